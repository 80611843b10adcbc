// The page of one conversation. All text goes into it by textContent: what a model or another
// person wrote is shown, and never becomes a part of the page.

const chat = location.pathname.split("/").pop()
const address = `/c/${chat}/turns`
const byId = id => document.getElementById(id)
const [scroller, list, form, input, notice] =
  ["scroller", "turns", "form", "text", "notice"].map(byId)

const ATTEMPTS = 6
const POLL = 2000  // milliseconds
const shown = new Map()  // the id of a turn, to its element
let revision = ""
let looks = 0  // at what is stored, so far
let asking = null  // what is being answered: {key, text, turn, abort}

const pause = ms => new Promise(done => setTimeout(done, ms))
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)),
  byte => byte.toString(16).padStart(2, "0")).join("")

// ---- A turn on the page -----------------------------------------------------------------------

function paragraph(kind, text) {
  const element = document.createElement("p")
  element.className = kind
  element.textContent = text
  return element
}

function addTurn(id, next = null) {
  const turn = document.createElement("li")
  turn.className = "turn"
  list.insertBefore(turn, next)
  shown.set(id, turn)
  byId("empty").hidden = true
  return turn
}

function fill(turn, messages) {
  turn.replaceChildren(...messages.filter(one => typeof one.content === "string")
    .map(one => paragraph(one.role, one.content)))
}

function say(turn, text, again) {
  turn.querySelector(".note")?.remove()
  if (!text) return
  const note = paragraph("note", text)
  note.setAttribute("role", "status")
  if (again) {
    const button = document.createElement("button")
    button.className = "again"
    button.textContent = "Try again"
    button.onclick = again
    note.append(button)
  }
  turn.append(note)
}

function scrolling(change) {  // keeps the end in sight, if it was
  const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80
  change()
  if (atEnd) scroller.scrollTop = scroller.scrollHeight
}

// ---- What is stored ---------------------------------------------------------------------------

async function sync() {
  const look = looks += 1
  try {
    const response = await fetch(address, {headers: {"If-None-Match": `"${revision}"`}})
    if (response.status === 200) {
      const turns = await response.json()
      if (look < looks) return  // it comes late: what it saw may be older than what is shown
      revision = response.headers.get("ETag").slice(1, -1)
      scrolling(() => show(turns))
    } else if (response.status !== 304) {
      throw new Error(await reason(response))
    }
    tell("")
  } catch (error) {
    tell(error instanceof TypeError ? "The server cannot be reached." : error.message)
  }
}

function show(turns) {
  const stored = new Set(turns.map(turn => turn.id))
  for (const [id, turn] of shown) {
    if (turn.dataset.stored && !stored.has(id)) forget(id)
  }
  let next = asking?.turn ?? null  // what is being answered will be stored last
  for (const {id, messages} of turns.toReversed()) {
    const turn = shown.get(id) ?? addTurn(id, next)
    next = turn
    if (turn.dataset.stored || id === asking?.key) continue
    fill(turn, messages)
    turn.className = "turn"
    turn.dataset.stored = true
    if (id === unanswered.get()?.key) unanswered.clear()
  }
  byId("empty").hidden = list.childElementCount > 0
  listed(turns[0]?.messages[0].content)
}

async function reason(response) {
  const {detail} = await response.json().catch(() => ({}))
  return typeof detail === "string" ? detail : `The server answered ${response.status}.`
}

function forget(id) {
  shown.get(id)?.remove()
  shown.delete(id)
}

function tell(text) {
  if (notice.textContent !== text) notice.textContent = text
  notice.hidden = !text
}

// ---- Asking -----------------------------------------------------------------------------------

// A message has one key for all attempts, and is remembered until it is known what became of it,
// also when this tab is loaded anew. So it may be sent as often as one likes.
const unanswered = {
  get: () => JSON.parse(sessionStorage.getItem(address)),
  set: message => sessionStorage.setItem(address, JSON.stringify(message)),
  clear: () => sessionStorage.removeItem(address),
}

async function ask({key, text}) {
  if (asking) return
  for (const button of list.querySelectorAll(".again")) button.remove()
  forget(key)
  unanswered.set({key, text})
  const turn = addTurn(key)
  asking = {key, text, turn, abort: new AbortController()}
  busy(true)
  fill(turn, [{role: "user", content: text}, {role: "assistant", content: ""}])
  scroller.scrollTop = scroller.scrollHeight

  let outcome, why
  for (let attempt = 1; !outcome; attempt += 1) {
    try {
      [outcome, why] = await attemptOnce(asking)
    } catch (error) {
      if (error.name === "AbortError") [outcome, why] = ["stopped", "Stopped. This is not stored."]
      else if (attempt === ATTEMPTS) [outcome, why] = ["lost", "The connection was lost."]
      else {
        say(turn, "The connection was lost. Asking again …")
        await pause(500 * attempt)
      }
    }
  }

  asking = null
  busy(false)
  const failed = outcome !== "done" && outcome !== "stopped"
  turn.className = failed ? "turn failed" : "turn"
  if (!failed) unanswered.clear()
  scrolling(() => say(turn, why, failed && (() => ask({key, text}))))
  await sync()
}

// Gives how it ended, and why; throws if the connection broke before it was said.
async function attemptOnce({key, text, turn, abort}) {
  const response = await fetch(address, {
    method: "POST",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({key, text}),
    signal: abort.signal,
  })
  if (!response.ok) return ["refused", await reason(response)]
  const answer = turn.querySelector(".assistant")
  answer.textContent = ""
  for await (const {event, data} of events(response.body)) {
    if (event === "text" || event === "again") scrolling(() => { answer.append(data); say(turn, "") })
    else if (event === "saving") say(turn, "The answer is not stored yet. Trying again …")
    else return [event, data]
  }
  throw new Error("the stream ended without an outcome")
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (let buffer = "", part; !(part = await reader.read()).done;) {
    const blocks = (buffer + part.value).split("\n\n")
    buffer = blocks.pop()
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split("\n").map(line => line.split(/: (.*)/s, 2)))
      if (fields.event) yield {event: fields.event, data: JSON.parse(fields.data)}
    }
  }
}

function busy(is) {
  byId("send").hidden = is
  byId("stop").hidden = !is
  asking?.turn.classList.toggle("busy", is)
  list.setAttribute("aria-busy", is)
}

// ---- The list of chats ------------------------------------------------------------------------

// It is kept in this browser, as the session is. With users, it would come from the server.
const chats = () => JSON.parse(localStorage.getItem("chats") ?? "[]")

function listed(title) {
  const others = chats().filter(one => one.id !== chat)
  const known = others.length < chats().length
  if (title && !known) others.unshift({id: chat, title: title.slice(0, 80)})
  // One that is empty has never begun, or has expired.
  if (known !== Boolean(title)) localStorage.setItem("chats", JSON.stringify(others))
  showChats()
}

function showChats() {
  byId("chats").replaceChildren(...chats().map(({id, title}) => {
    const [item, link] = ["li", "a"].map(name => document.createElement(name))
    link.href = `/c/${id}`
    link.textContent = title
    if (id === chat) link.setAttribute("aria-current", "page")
    item.append(link)
    return item
  }))
}

// ---- Begin ------------------------------------------------------------------------------------

form.onsubmit = event => {
  event.preventDefault()
  const text = input.value.trim().toWellFormed()
  if (!text || asking) return
  input.value = ""
  ask({key: newKey(), text})
}
input.onkeydown = event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) form.onsubmit(event)
}
byId("stop").onclick = () => { asking?.abort.abort(); input.focus() }

window.onstorage = showChats
document.onvisibilitychange = () => document.hidden || sync()
await sync()
list.setAttribute("aria-live", "polite")  // from here on, what comes is new
if (unanswered.get()) ask(unanswered.get())
while (true) {
  await pause(POLL)
  if (!document.hidden) await sync()
}

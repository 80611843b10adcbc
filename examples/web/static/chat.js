// The page of one conversation: sends, streams, stops, asks again, and looks for what was said
// elsewhere.

import {addTurn, byId, fill, list, recall, removeTurn, say, scroller, scrolling, show} from "./turns.js"
import {deleteChat, forgetUser, reason, said, showChats, whoAsks} from "./user.js"

const chat = location.pathname.split("/").pop()
const address = `/c/${chat}/turns`
const [form, input, notice] = ["form", "text", "notice"].map(byId)

const ATTEMPTS = 6
const POLL = 2000  // milliseconds
let user = ""
let revision = ""
let looks = 0  // at what is stored, so far
let asking = null  // what is being answered: {key, text, turn, abort}

const pause = ms => new Promise(done => setTimeout(done, ms))
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)),
  byte => byte.toString(16).padStart(2, "0")).join("")

// ---- What is stored ---------------------------------------------------------------------------

async function sync() {
  const look = looks += 1
  try {
    const response = await fetch(address, {headers: {"If-None-Match": `"${revision}"`}})
    if (response.status === 200) {
      const turns = await response.json()
      if (look < looks) return  // it comes late: what it saw may be older than what is shown
      revision = response.headers.get("ETag").slice(1, -1)
      scrolling(() => {
        if (show(turns, asking).includes(unanswered.get()?.key)) unanswered.clear()
      })
    } else if (response.status !== 304) {
      throw new Error(await reason(response))
    }
    await showChats(user, chat, remove)
    tell("")
  } catch (error) {
    tell(said(error))
  }
}

function tell(text) {
  if (notice.textContent !== text) notice.textContent = text
  notice.hidden = !text
}

// ---- Asking -----------------------------------------------------------------------------------

// A message has one key for all attempts, and is remembered until it is known what became of it,
// also when this tab is loaded anew. So it may be sent as often as one likes.
const place = () => `${user} ${address}`
const unanswered = {
  get: () => JSON.parse(sessionStorage.getItem(place())),
  set: message => sessionStorage.setItem(place(), JSON.stringify(message)),
  clear: () => sessionStorage.removeItem(place()),
}
// What ends in one of these is not asked again: it is stored, or is not to be.
const OVER = new Set(["done", "stopped", "erased"])

async function ask({key, text}) {
  if (asking) return
  for (const button of list.querySelectorAll(".again")) button.remove()
  removeTurn(key)
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
  revision = ""  // a look between the save and its news has left this turn out
  busy(false)
  const failed = !OVER.has(outcome)
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
    else if (event === "recalled") data && scrolling(() => recall(turn, data))
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
byId("forget").onclick = async () => {
  if (!confirm(`Delete all chats and memories of ${user}, for good?`)) return
  stop()
  await forgetUser(user)
  await sync()
}

async function remove(id, title) {
  if (!confirm(`Delete “${title}” and what is remembered of it, for good?`)) return
  if (id === chat) stop()
  await deleteChat(id, title)
  await sync()
}

function stop() {
  asking?.abort.abort()
  unanswered.clear()
}

const [aside, main] = document.querySelectorAll("aside, main")
while (!user) {
  try {
    user = await whoAsks()
  } catch (error) {
    main.hidden = false
    tell(said(error))
    await pause(POLL)
  }
}
// What an earlier page has left comes first: a message that is sent, and fails, while the first look
// is under way is none of that, and waits for its "Try again".
const left = unanswered.get()
aside.hidden = main.hidden = false
form.hidden = Boolean(left)
input.focus()

document.onvisibilitychange = () => document.hidden || sync()
await sync()
list.setAttribute("aria-live", "polite")  // from here on, what comes is new
form.hidden = false
if (left) input.focus()
if (left && unanswered.get()) ask(left)
while (true) {
  await pause(POLL)
  if (!document.hidden) await sync()
}

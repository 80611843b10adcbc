// The turns of the conversation, as elements of the page. All text goes into it by textContent:
// what a model or another person wrote is shown, and never becomes a part of the page.

export const byId = id => document.getElementById(id)
export const list = byId("turns")
export const scroller = byId("scroller")
const shown = new Map()  // the id of a turn, to its element

function element(tag, kind, text, ...children) {
  const made = document.createElement(tag)
  made.className = kind
  made.textContent = text
  made.append(...children)
  return made
}

export function addTurn(id, next = null) {
  const turn = element("li", "turn", "")
  list.insertBefore(turn, next)
  shown.set(id, turn)
  byId("empty").hidden = true
  return turn
}

export function removeTurn(id) {
  shown.get(id)?.remove()
  shown.delete(id)
}

export function fill(turn, messages) {
  const recalled = turn.querySelector(".recalled")
  turn.replaceChildren(...messages.filter(one => typeof one.content === "string")
    .map(one => element("p", one.role, one.content)))
  if (recalled) turn.querySelector(".assistant")?.before(recalled)
}

// What the model was told of earlier chats. It is stored nowhere, so it is gone with this page.
export function recall(turn, text) {
  turn.querySelector(".recalled")?.remove()
  const title = element("summary", "", "Recalled from earlier chats")
  turn.querySelector(".assistant").before(
    element("details", "recalled", "", title, element("p", "", text)))
}

export function say(turn, text, again) {
  turn.querySelector(".note")?.remove()
  if (!text) return
  const note = element("p", "note", text)
  note.setAttribute("role", "status")
  if (again) {
    const button = element("button", "again", "Try again")
    button.onclick = again
    note.append(button)
  }
  turn.append(note)
}

// Shows what is stored; gives the ids of turns of which that was not known before.
export function show(turns, asking) {
  const stored = new Set(turns.map(turn => turn.id))
  for (const [id, turn] of shown) {
    if (turn.dataset.stored && !stored.has(id)) removeTurn(id)
  }
  const fresh = []
  let next = asking?.turn ?? null  // what is being answered will be stored last
  for (const {id, messages} of turns.toReversed()) {
    const turn = shown.get(id) ?? addTurn(id, next)
    next = turn
    if (turn.dataset.stored || id === asking?.key) continue
    fill(turn, messages)
    turn.className = "turn"
    turn.dataset.stored = true
    fresh.push(id)
  }
  byId("empty").hidden = list.childElementCount > 0
  return fresh
}

export function scrolling(change) {  // keeps the end in sight, if it was
  const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80
  change()
  if (atEnd) scroller.scrollTop = scroller.scrollHeight
}

// Who asks, and what there is of them: the list of chats, and the end of it all.

import {byId} from "./turns.js"

let pages = 1  // of the list that are shown
let listed = ""  // what is shown of it, as JSON

export async function reason(response) {
  const {detail} = await response.json().catch(() => ({}))
  return typeof detail === "string" ? detail : `The server answered ${response.status}.`
}

export function said(error) {
  return error instanceof TypeError ? "The server cannot be reached." : error.message
}

// Gives the name of the user; where nobody has said it, asks for it and never returns.
export async function whoAsks() {
  const response = await fetch("/me")
  if (response.status === 401) return new Promise(askWho)
  if (!response.ok) throw new Error(await reason(response))
  const {name} = await response.json()
  byId("me").textContent = name
  byId("switch").onclick = askWho
  return name
}

function askWho() {
  for (const part of document.querySelectorAll("aside, main")) part.hidden = true
  const [form, name, problem] = ["who", "name", "problem"].map(byId)
  form.hidden = false
  name.focus()
  form.onsubmit = async event => {
    event.preventDefault()
    try {
      const response = await fetch("/me", {
        method: "POST",
        headers: {"Content-Type": "application/json"},
        body: JSON.stringify({name: name.value.toWellFormed()}),
      })
      if (!response.ok) throw new Error(await reason(response))
      location.reload()
    } catch (error) {
      problem.textContent = said(error)
    }
  }
}

// Shows the list; `remove` is called with a chat that is to be deleted.
export async function showChats(user, current, remove) {
  const found = []
  let older = ""  // where the next page begins; null behind the last
  for (let page = 0; page < pages && older !== null; page += 1) {
    const response = await fetch(`/chats${older && `?before=${older}`}`)
    if (!response.ok) throw new Error(await reason(response))
    const answer = await response.json()
    if (answer.user !== user) return location.reload()  // another tab says so
    found.push(...answer.chats)
    older = answer.older
  }
  byId("older").hidden = older === null
  byId("older").onclick = () => { pages += 1; return showChats(user, current, remove) }
  if (listed === JSON.stringify(found)) return
  listed = JSON.stringify(found)
  byId("chats").replaceChildren(...found.map(({id, title}) => {
    const [item, link, button] = ["li", "a", "button"].map(tag => document.createElement(tag))
    link.href = `/c/${id}`
    link.textContent = title ?? "Untitled"
    if (id === current) link.setAttribute("aria-current", "page")
    button.textContent = "×"
    button.title = "Delete"
    button.setAttribute("aria-label", `Delete ${link.textContent}`)
    button.onclick = () => remove(id, link.textContent)
    item.append(link, button)
    return item
  }))
}

// Both delete, and say what that was.
export const forgetUser = name => erase("/me", ({conversations, turns}) =>
  `${name} is forgotten: chats ${conversations}, turns ${turns}`)
export const deleteChat = (id, title) => erase(`/c/${id}`, ({turns}) =>
  `“${title}” is deleted: turns ${turns}`)

async function erase(path, told) {
  const receipt = byId("receipt")
  receipt.textContent = "Deleting …"
  receipt.hidden = false
  try {
    const response = await fetch(path, {method: "DELETE"})
    if (!response.ok) throw new Error(await reason(response))
    const erased = await response.json()
    const {facts = 0, exchanges = 0} = erased.parts
    receipt.textContent = `${told(erased)}, memories ${facts + exchanges}.`
      + (erased.verified ? " Nothing is left." : "")
  } catch (error) {
    receipt.textContent = said(error)
  }
}

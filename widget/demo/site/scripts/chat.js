import { eventNames } from './event-names.js'

/** How long a change of person waits for the chat. The next page makes up for what was missed. */
const patienceMs = 4_000

/**
 * What the shop does with the widget that `widget.js` brings: tells it who is signed in, opens it from the page's own buttons,
 * and writes its events down.
 *
 * @import { ServiceWidget } from '../../../src/index.ts'
 * @param {import('./shop-facts.js').ShopFacts} facts
 * @param {ReturnType<typeof import('./event-log.js').createEventLog>} log
 */
export function startChat(facts, log) {
  /** @type {ServiceWidget | undefined} */
  let widget
  /** @type {{configure(options: object): void, load(): Promise<ServiceWidget>} | undefined} */
  let loader
  /** @type {(widget: ServiceWidget) => void} */
  let tellReady = () => {}
  /** @type {Promise<ServiceWidget>} */
  const ready = new Promise((resolve) => {
    tellReady = resolve
  })

  document.addEventListener('service-widget:start', (event) => {
    loader = /** @type {CustomEvent} */ (event).detail
    if (facts.signsIdentity) loader?.configure({ identityProvider: fetchAssertion })
  })
  document.addEventListener('service-widget:ready', (event) => {
    const made = /** @type {ServiceWidget} */ (/** @type {CustomEvent} */ (event).detail.widget)
    widget = made
    for (const name of eventNames) made.on(name, (payload) => log.add('event', name, brief(name, payload)))
    tellReady(made)
  })
  for (const button of document.querySelectorAll('[data-ask]')) {
    button.addEventListener('click', () => void openWith(button.getAttribute('data-ask') ?? ''))
  }
  for (const form of document.querySelectorAll('form')) {
    if (form.getAttribute('action') === '/account/sign-in') form.addEventListener('submit', signIn)
    if (form.getAttribute('action') === '/account/sign-out') form.addEventListener('submit', signOut)
  }

  return {
    /** The widget, once it is loaded. */
    ready,
  }

  /** @param {string} text */
  async function openWith(text) {
    const opened = widget ?? (await (loader ? loader.load() : ready))
    opened.open()
    if (text) opened.prefill(text)
  }

  /** The shop's backend signs who is signed in there; what the page says of it counts for nothing. */
  async function fetchAssertion() {
    const response = await fetch('/identity-assertion', { method: 'POST' })
    if (response.status === 204) return undefined
    if (!response.ok) throw new Error(`the shop answered ${response.status}`)
    const { assertion } = await response.json()
    return assertion
  }

  /**
   * With a chat going on, it is told before the page changes. Without one, the form is an ordinary form, and the chat
   * asks for an assertion when it begins.
   *
   * @param {SubmitEvent} event
   */
  async function signIn(event) {
    const form = /** @type {HTMLFormElement} */ (event.currentTarget)
    const { submitter } = event
    if (!widget || !facts.signsIdentity || !(submitter instanceof HTMLButtonElement)) return
    event.preventDefault()
    const person = { externalSubject: submitter.value, displayName: submitter.dataset.name ?? '' }
    const body = new URLSearchParams({ [submitter.name]: submitter.value })
    await fetch(form.action, { method: 'POST', body, redirect: 'manual' })
    await told('identify', person, widget.identify(person))
    location.assign('/account')
  }

  /** @param {SubmitEvent} event */
  async function signOut(event) {
    const form = /** @type {HTMLFormElement} */ (event.currentTarget)
    if (!widget || !facts.signsIdentity) return
    event.preventDefault()
    await told('clearIdentity', {}, widget.clearIdentity())
    form.submit()
  }

  /** @param {string} name @param {object} payload @param {Promise<unknown>} change */
  async function told(name, payload, change) {
    const done = change.then(
      () => log.add('page', `${name}: done`, payload),
      (error) => log.add('page', `${name}: failed`, { code: error?.code ?? 'unknown' }),
    )
    await Promise.race([done, new Promise((resolve) => setTimeout(resolve, patienceMs))])
  }
}

/**
 * The whole list of messages with every change would be all that one sees.
 *
 * @param {string} name @param {any} payload
 */
function brief(name, payload) {
  if (name !== 'messages.changed') return payload
  return { messages: payload.messages.length, newest: payload.messages.at(-1) }
}

import { eventNames } from './event-names.js'

/** How long signing out waits for the chat to forget who was there. The next page makes up for what it missed. */
const forgetWithinMs = 4_000

/**
 * What the shop does with the widget that `widget.js` brings: tells it who is signed in, opens it from the page's own buttons,
 * and writes its events down.
 *
 * @import { ServiceWidget } from '../../../src/index.ts'
 * @param {import('./shop-facts.js').ShopFacts} facts
 * @param {ReturnType<typeof import('./event-log.js').createEventLog>} log
 */
export function startChat(facts, log) {
  const identity = facts.signsIdentity ? facts.customer : undefined
  /** @type {ServiceWidget | undefined} */
  let widget
  /** @type {{configure(options: object): void, load(): Promise<ServiceWidget>} | undefined} */
  let loader
  /** Whom the chat was told of on this page. @type {string | undefined} */
  let toldOf
  /** @type {(widget: ServiceWidget) => void} */
  let tellReady = () => {}
  /** @type {Promise<ServiceWidget>} */
  const ready = new Promise((resolve) => {
    tellReady = resolve
  })

  document.addEventListener('service-widget:start', (event) => {
    loader = /** @type {CustomEvent} */ (event).detail
    loader?.configure({ identityProvider: fetchAssertion })
  })
  document.addEventListener('service-widget:ready', (event) => {
    const made = /** @type {ServiceWidget} */ (/** @type {CustomEvent} */ (event).detail.widget)
    widget = made
    for (const name of eventNames) made.on(name, (payload) => log.add('event', name, brief(name, payload)))
    made.on('session.ready', ({ session }) => void tellWhoIsThere(made, session.identity.state === 'verified'))
    tellReady(made)
  })
  for (const button of document.querySelectorAll('[data-ask]')) {
    button.addEventListener('click', () => void openWith(button.getAttribute('data-ask') ?? ''))
  }
  for (const form of document.querySelectorAll('form')) {
    if (identity && /^\/account\/sign-(in|out)$/.test(form.getAttribute('action') ?? '')) forgetFirst(form)
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
    if (response.status !== 200) return undefined
    const { assertion } = await response.json()
    return assertion
  }

  /** @param {ServiceWidget} made @param {boolean} isVerified */
  async function tellWhoIsThere(made, isVerified) {
    if (toldOf === identity?.externalSubject && (identity || !isVerified)) return
    toldOf = identity?.externalSubject
    try {
      if (identity) await made.identify(identity)
      else await made.clearIdentity()
      log.add('page', identity ? 'identify: done' : 'clearIdentity: done', identity)
    } catch (error) {
      toldOf = undefined
      log.add('page', identity ? 'identify: failed' : 'clearIdentity: failed', detailOf(error))
    }
  }

  /**
   * Before another person is signed in, or nobody, the chat forgets the one who was.
   *
   * @param {HTMLFormElement} form
   */
  function forgetFirst(form) {
    form.addEventListener('submit', (event) => {
      if (!widget) return
      event.preventDefault()
      const submitter = /** @type {SubmitEvent} */ (event).submitter
      const pause = new Promise((resolve) => setTimeout(resolve, forgetWithinMs))
      const forgotten = widget
        .clearIdentity()
        .catch((/** @type {unknown} */ error) => log.add('page', 'clearIdentity: failed', detailOf(error)))
      void Promise.race([forgotten, pause]).then(() => {
        // What the button says is not in the form when the script submits it.
        if (submitter instanceof HTMLButtonElement && submitter.name) {
          const field = document.createElement('input')
          Object.assign(field, { type: 'hidden', name: submitter.name, value: submitter.value })
          form.append(field)
        }
        form.submit()
      })
    })
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

/** @param {any} error */
const detailOf = (error) => ({ code: error?.code ?? 'unknown', recoverable: error?.detail?.recoverable })

/** @satisfies {Record<keyof import('../../../src/index.ts').WidgetEventMap, true>} */
const names = {
  'config.loaded': true,
  'availability.changed': true,
  'connection.changed': true,
  'session.ready': true,
  'session.identified': true,
  'panel.opened': true,
  'panel.closed': true,
  'message.queued': true,
  'offline.submitted': true,
  'message.retrying': true,
  'message.retry.exhausted': true,
  'message.accepted': true,
  'message.received': true,
  'message.state.changed': true,
  'message.redacted': true,
  'messages.changed': true,
  'unread.changed': true,
  'typing.started': true,
  'typing.stopped': true,
  'agent.assigned': true,
  'agent.unassigned': true,
  'presence.changed': true,
  'conversation.closed': true,
  'conversation.reopened': true,
  'rating.requested': true,
  'rating.given': true,
  'consent.changed': true,
  'form.changed': true,
  'navigation.requested': true,
  'navigation.cancelled': true,
  'screenshot.requested': true,
  'screenshot.cancelled': true,
  'requests.changed': true,
  'session.expired': true,
  'session.revoked': true,
  'session.closed': true,
  'visitor.banned': true,
  'connection.disabled': true,
  'replay.reset.required': true,
  error: true,
}
/** Names of all events of the package. The compiler checks that none is missing. */
const eventNames = /** @type {(keyof typeof names)[]} */ (Object.keys(names))

/** Maximum time that a sign-in waits for the chat. Afterwards, the next page identifies the visitor. */
const maxWaitMs = 4_000

/**
 * Connects the shop with the widget: identifies the customer, opens the chat from the shop's
 * buttons, and logs the widget's events.
 *
 * @import { ServiceWidget, ServiceWidgetLoader } from '../../../src/index.ts'
 * @param {{signsIdentity: boolean, log: ReturnType<typeof
 * import('./event-log.js').createEventLog>}} deps
 */
export function startChat({ signsIdentity, log }) {
  /** @type {ServiceWidget | undefined} */
  let widget
  /** @type {ServiceWidgetLoader | undefined} */
  let loader

  document.addEventListener('service-widget:start', (event) => {
    loader = /** @type {CustomEvent} */ (event).detail
    if (signsIdentity) loader?.configure({ identityProvider: fetchAssertion })
  })
  document.addEventListener('service-widget:ready', (event) => {
    const loaded = /** @type {ServiceWidget} */ (/** @type {CustomEvent} */ (event).detail.widget)
    widget = loaded
    for (const name of eventNames) loaded.on(name, (payload) => log.add('event', name, summarize(name, payload)))
    // The installation decides on which side the launcher is. The workbench uses the other side.
    loaded.on('config.loaded', ({ config }) => {
      document.documentElement.classList.toggle('launcher-left', config.appearance.position === 'left')
    })
  })
  for (const button of document.querySelectorAll('[data-ask]')) {
    button.addEventListener('click', async () => {
      const opened = widget ?? (await loader?.load())
      opened?.open()
      opened?.prefill(button.getAttribute('data-ask') ?? '')
    })
  }
  if (signsIdentity) document.addEventListener('submit', changeIdentity)

  /**
   * Handles the sign-in and sign-out forms. If the chat is loaded, its identity changes before the
   * next page is loaded. Otherwise the form is submitted as usual, and the chat requests an
   * assertion when it starts.
   *
   * @param {SubmitEvent} event
   */
  async function changeIdentity(event) {
    const form = /** @type {HTMLFormElement} */ (event.target)
    const button = /** @type {HTMLButtonElement} */ (event.submitter)
    if (!widget) return
    event.preventDefault()
    if (button.name === 'customer') {
      await fetch(form.action, {
        method: 'POST',
        body: new URLSearchParams({ customer: button.value }),
        redirect: 'manual',
      })
      const identity = { externalSubject: button.value, displayName: button.dataset.name }
      await waitFor('identify', widget.identify(identity))
      location.assign('/account')
    } else {
      await waitFor('clearIdentity', widget.clearIdentity())
      form.submit()
    }
  }

  /** @param {string} name @param {Promise<unknown>} change */
  async function waitFor(name, change) {
    const done = change.then(
      () => log.add('page', `${name}: done`, {}),
      (error) => log.add('page', `${name}: failed`, { code: error?.code }),
    )
    await Promise.race([done, new Promise((resolve) => setTimeout(resolve, maxWaitMs))])
  }
}

/** Requests an assertion from the shop's backend. */
async function fetchAssertion() {
  const response = await fetch('/identity-assertion', { method: 'POST' })
  if (response.status === 204) return undefined
  if (!response.ok) throw new Error(`the shop answered ${response.status}`)
  return (await response.json()).assertion
}

/**
 * Shortens lists of messages in a payload, because they would fill the log.
 *
 * @param {string} name
 * @param {any} payload
 */
function summarize(name, payload) {
  if (name !== 'messages.changed') return payload
  return { messages: payload.messages.length, newest: payload.messages.at(-1) }
}

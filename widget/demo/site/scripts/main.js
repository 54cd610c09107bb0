import { followKinds } from './catalogue.js'
import { startChat } from './chat.js'
import { createEventLog } from './event-log.js'
import { createNetworkTrouble } from './network-trouble.js'
import { createWorkbench } from './workbench.js'

/** @type {import('./shop-facts.js').ShopFacts} */
const facts = JSON.parse(document.querySelector('meta[name="shop-facts"]')?.getAttribute('content') ?? '{}')
const log = createEventLog({ now: () => new Date() })

// Before the widget makes its first call: what it calls is this.
const trouble = createNetworkTrouble({
  gatewayOrigin: facts.gatewayUrl,
  fetch: window.fetch.bind(window),
  onRequest: (name, payload) => log.add('request', name, payload),
})
window.fetch = trouble.fetch

log.add('page', 'page loaded', { path: location.pathname, signedInAs: facts.customer?.displayName ?? 'nobody' })
const chat = startChat(facts, log)
createWorkbench({ facts, log, trouble, ready: chat.ready })
followKinds(() => log.add('page', 'page changed in place', { path: location.pathname, title: document.title }))

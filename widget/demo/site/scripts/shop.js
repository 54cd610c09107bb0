import { startChat } from './chat.js'
import { createEventLog } from './event-log.js'
import { createNetworkTrouble } from './network-trouble.js'
import { startWorkbench } from './workbench.js'

const { gatewayUrl = '', signsIdentity } = document.body.dataset
const log = createEventLog()

// Create this before the widget, so that the widget's first request already uses this `fetch`.
const trouble = createNetworkTrouble({
  gatewayOrigin: gatewayUrl,
  fetch: window.fetch.bind(window),
  onRequest: (name, payload) => log.add('request', name, payload),
})
window.fetch = trouble.fetch

log.add('page', 'page loaded', { path: location.pathname })
startChat({ signsIdentity: signsIdentity !== undefined, log })
startWorkbench({ log, trouble })

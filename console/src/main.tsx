import { createConnectTransport } from '@connectrpc/connect-web'
import { render } from 'preact'
import { createAnnouncer } from './announcer.ts'
import { authorize, createApi } from './api.ts'
import { App } from './app.tsx'
import { addIdempotencyKeys, createOperations } from './operations.ts'
import { createRouter } from './router.ts'
import { createSessionHolder, takeLinkSecret } from './session.ts'
import { createSessionCalls } from './session-calls.ts'
import { createShortcuts } from './shortcuts.ts'
import './styles/index.css'

const holder = createSessionHolder({
  calls: createSessionCalls(fetch.bind(window)),
  channel: new BroadcastChannel('service.console'),
  now: Date.now,
})
const openLink = () => {
  holder.link.value = takeLinkSecret(window) ?? holder.link.value
}
openLink()
// A link that is opened in a tab of the console changes only the fragment.
window.addEventListener('hashchange', openLink)
void holder.load()
const api = createApi(
  createConnectTransport({
    baseUrl: `${location.origin}/rpc`,
    useBinaryFormat: true,
    interceptors: [addIdempotencyKeys(createOperations()), authorize(() => holder.current.value?.id, holder.refused)],
  }),
)

render(
  <App
    holder={holder}
    api={api}
    router={createRouter(window)}
    announcer={createAnnouncer()}
    shortcuts={createShortcuts(document, localStorage)}
  />,
  document.getElementById('console')!,
)

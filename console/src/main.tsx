import { createConnectTransport } from '@connectrpc/connect-web'
import { render } from 'preact'
import { createAnnouncer } from './announcer.ts'
import { authorize, createApi } from './api.ts'
import { App } from './app.tsx'
import { addIdempotencyKeys, createOperations } from './operations.ts'
import { createRouter } from './router.ts'
import { createSessionHolder } from './session.ts'
import { createShortcuts } from './shortcuts.ts'
import './styles/index.css'

const holder = createSessionHolder({ storage: sessionStorage, now: Date.now })
const onRejected = (token: string) => {
  // A late response to a call of an earlier session must not end the current session.
  if (holder.current.value?.token === token) holder.end('rejected')
}
const api = createApi(
  createConnectTransport({
    baseUrl: `${location.origin}/rpc`,
    useBinaryFormat: true,
    interceptors: [addIdempotencyKeys(createOperations()), authorize(() => holder.current.value?.token, onRejected)],
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

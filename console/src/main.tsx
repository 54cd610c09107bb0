import { createConnectTransport } from '@connectrpc/connect-web'
import { render } from 'preact'
import { createAnnouncer } from './announcer.ts'
import { authorize, createApi } from './api.ts'
import { App } from './app.tsx'
import { createOperations, keyWrites } from './operations.ts'
import { createRouter } from './router.ts'
import { createSessionHolder } from './session.ts'
import { createShortcuts } from './shortcuts.ts'
import './styles/index.css'

const holder = createSessionHolder({ storage: sessionStorage, now: Date.now })
const refused = (token: string) => {
  // A call of the session before must not end the one that came after it.
  if (holder.current.value?.token === token) holder.end('refused')
}
const api = createApi(
  createConnectTransport({
    baseUrl: `${location.origin}/rpc`,
    useBinaryFormat: true,
    interceptors: [keyWrites(createOperations()), authorize(() => holder.current.value?.token, refused)],
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

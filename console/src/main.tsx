import { createConnectTransport } from '@connectrpc/connect-web'
import { render } from 'preact'
import { authorize, createApi } from './api.ts'
import { App } from './app.tsx'
import { createAnnouncer } from './console-context.ts'
import { addIdempotencyKeys } from './operations.ts'
import { createRouter } from './router.ts'
import { createSessionCalls, createSessionHolder, takeSignInFragment } from './session.ts'
import { createShortcuts } from './shortcuts.ts'
import './styles/index.css'

const holder = createSessionHolder(createSessionCalls(fetch.bind(window)), new BroadcastChannel('service.console'))
const found = openFragment()
// A sign-in link that is opened in a tab of the console changes only the fragment.
window.addEventListener('hashchange', openFragment)
void (found === 'signed-in' ? holder.loadNew() : holder.load())

function openFragment() {
  const fragment = takeSignInFragment(window)
  if (typeof fragment === 'object') {
    if ('link' in fragment) holder.link.value = fragment.link
    else if ('mailLink' in fragment) holder.mailLink.value = fragment.mailLink
    else holder.providerProblem.value = fragment.problem
  }
  return fragment
}
const api = createApi(
  createConnectTransport({
    baseUrl: `${location.origin}/rpc`,
    useBinaryFormat: true,
    interceptors: [addIdempotencyKeys(), authorize(() => holder.current.value?.id, holder.refused)],
  }),
)

render(
  <App
    holder={holder}
    api={api}
    router={createRouter(window)}
    announcer={createAnnouncer()}
    shortcuts={createShortcuts(document)}
  />,
  document.getElementById('console')!,
)

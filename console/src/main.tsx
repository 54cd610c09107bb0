import { createConnectTransport } from '@connectrpc/connect-web'
import { render } from 'preact'
import { authorize, createApi } from './api.ts'
import { App } from './app.tsx'
import { createAnnouncer } from './console-context.ts'
import { addIdempotencyKeys } from './operations.ts'
import { createRouter } from './router.ts'
import { createSessionCalls, createSessionHolder, type ProviderProblem, takeSignInFragment } from './session.ts'
import { createShortcuts } from './shortcuts.ts'
import './styles/index.css'

const holder = createSessionHolder(createSessionCalls(fetch.bind(window)), new BroadcastChannel('service.console'))
const isSignedIn = openFragment()
// A sign-in link that is opened in a tab of the console changes only the fragment.
window.addEventListener('hashchange', openFragment)
void (isSignedIn ? holder.loadNew() : holder.load())

/** Returns true after a sign-in at the identity provider. */
function openFragment() {
  const { name, value } = takeSignInFragment(window)
  if (name === 'sign-in') holder.link.value = value
  if (name === 'confirm-mail') holder.mailLink.value = value
  if (name === 'sign-in-failed') holder.providerProblem.value = value as ProviderProblem
  return name === 'signed-in'
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

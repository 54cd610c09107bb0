import { useConsole } from '../console-context.ts'

/** Data that a scope shows, in the words of the console. */
const data = {
  'sessions:read': 'names, pages and sessions of visitors',
  'leads:read': 'leads and contact details',
  'commands:read': 'requests to the visitor’s page',
}

/** Says which data the operator's session does not show. Shows nothing if it shows all. */
export function HiddenData({ scopes = Object.keys(data) as Scope[] }: { scopes?: Scope[] }) {
  const { session } = useConsole()
  const hidden = scopes.filter((scope) => !session.scopes.includes(scope)).map((scope) => data[scope])
  if (hidden.length === 0) return null
  return <p class="hint">Your session does not have permission to show {hidden.join(', ')}.</p>
}

type Scope = keyof typeof data

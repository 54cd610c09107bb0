import { signal } from '@preact/signals'

/** The name and the picture of an operator that visitors see. */
export interface ShownAgent {
  displayName: string
  avatarUrl?: string | undefined
}

export type SessionEnd = 'signed_out' | 'expired' | 'rejected'

export type SessionHolder = ReturnType<typeof createSessionHolder>

/** Reason of a failed sign-in at the identity provider, as the gateway names it. */
export type ProviderProblem = 'refused' | 'denied' | 'unavailable'

type TabMessage = { name: 'session-changed' | 'signed-out' | 'drafts?' } | { name: 'drafts'; count: number }

type TabChannel = Pick<BroadcastChannel, 'postMessage' | 'addEventListener' | 'removeEventListener'>

/** Maximum delay that `setTimeout` supports. */
const maxTimerMs = 2 ** 31 - 1
const retryMs = 2_000
/** How long to wait for answers of other tabs, in milliseconds. */
const tabAnswerMs = 200

/** Holds the session of this browser, which all tabs share. */
export function createSessionHolder(calls: SessionCalls, channel: TabChannel) {
  const current = signal<WorkspaceSession | undefined>(undefined)
  /** Undefined as soon as the session has been read. */
  const loading = signal<'loading' | 'unreachable' | undefined>('loading')
  const ended = signal<SessionEnd | undefined>(undefined)
  /** Secret of a sign-in link that was opened in this tab. It is never stored. Empty if the link is not accepted. */
  const link = signal<string | undefined>(undefined)
  /** Secret of a link that confirms the operator's mail address, and was opened in this tab. */
  const mailLink = signal<string | undefined>(undefined)
  const providerProblem = signal<ProviderProblem | undefined>(undefined)
  /** URL of the operator's picture. */
  const face = signal<string | undefined>(undefined)
  let timer: ReturnType<typeof setTimeout> | undefined
  let countDrafts = () => 0
  /** Counts sign-ins and sign-outs, so that `load` ignores an answer from before. */
  let changes = 0

  const tell = (message: TabMessage) => channel.postMessage(message)

  function end(reason: SessionEnd) {
    clearTimeout(timer)
    changes += 1
    if (!current.value) return
    ended.value = reason
    current.value = undefined
  }

  function begin(session: WorkspaceSession) {
    changes += 1
    ended.value = undefined
    face.value = session.avatarUrl
    // If nothing has changed, keep the object. A new object would create all views again.
    const { id, displayName } = current.value ?? {}
    if (id !== session.id || displayName !== session.displayName) current.value = session
    watchExpiry()
  }

  function watchExpiry() {
    clearTimeout(timer)
    if (!current.value) return
    const left = Date.parse(current.value.expiresAt) - Date.now()
    if (left <= 0) end('expired')
    else timer = setTimeout(watchExpiry, Math.min(left, maxTimerMs))
  }

  /** Reads the session of this browser. Retries while the service does not answer. */
  async function load() {
    const before = changes
    const result = await calls.current()
    if (before !== changes) return
    if (typeof result === 'object' && result.value) begin(result.value)
    else if (typeof result === 'object' || result === 'refused') end('rejected')
    else if (!current.value) {
      loading.value = 'unreachable'
      setTimeout(() => void load(), retryMs)
      return
    }
    loading.value = undefined
  }

  function accept(result: CallResult<WorkspaceSession>): CallFailure | undefined {
    if (typeof result !== 'object') return result
    link.value = undefined
    begin(result.value)
    tell({ name: 'session-changed' })
    return undefined
  }

  /** Signs out in all tabs. Returns false if the service cannot be reached; the session then stays. */
  async function signOut() {
    if (typeof (await calls.signOut()) !== 'object') return false
    tell({ name: 'signed-out' })
    end('signed_out')
    return true
  }

  function draftsOfAllTabs(): Promise<number> {
    return new Promise((resolve) => {
      let count = countDrafts()
      const add = ({ data }: MessageEvent<TabMessage>) => {
        if (data.name === 'drafts') count += data.count
      }
      channel.addEventListener('message', add)
      tell({ name: 'drafts?' })
      setTimeout(() => {
        channel.removeEventListener('message', add)
        resolve(count)
      }, tabAnswerMs)
    })
  }

  channel.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => {
    if (data.name === 'session-changed') void load()
    if (data.name === 'signed-out') end('signed_out')
    if (data.name === 'drafts?') tell({ name: 'drafts', count: countDrafts() })
  })

  return {
    current,
    loading,
    providerProblem,
    calls,
    /** Reads the session after a sign-in at the identity provider, in all tabs. */
    async loadNew() {
      await load()
      tell({ name: 'session-changed' })
    },
    ended,
    link,
    mailLink,
    face,
    /** Shows a changed picture of the operator in all tabs. */
    setFace(url: string | undefined) {
      face.value = url
      tell({ name: 'session-changed' })
    },
    load,
    signIn: async (credential: Credential, names: SignInNames) => accept(await calls.signIn(credential, names)),
    signInWithPasskey: async (response: object) => accept(await calls.signInWithPasskey(response)),
    signOut,
    draftsOfAllTabs,
    /** Returns the name and picture of the signed-in operator, as visitors see them. */
    agent: (): ShownAgent => ({ displayName: current.peek()?.displayName ?? '', avatarUrl: face.peek() }),
    /** Sets the function that counts the conversations with drafts in this tab. */
    onCountDrafts(count: () => number) {
      countDrafts = count
    },
    /** Reads the session again, unless the refused call was one of an earlier session. */
    async refused(sessionId: string) {
      if (current.value?.id === sessionId) await load()
    },
  }
}

/**
 * Reads what a mailed link or the identity provider has put into the fragment, and removes it from the
 * address and from the history of this tab.
 */
export function takeSignInFragment({ location, history }: Pick<Window, 'location' | 'history'>) {
  const { hash, pathname, search } = location
  const [, name, value = ''] =
    /^#(sign-in|sign-in-failed|confirm-mail)=([\w-]+)$/.exec(hash) ?? /^#(signed-in)$/.exec(hash) ?? []
  if (name) history.replaceState(null, '', pathname + search)
  return { name, value }
}

/** An operator's session. The browser keeps its secret in a cookie that scripts cannot read. */
export interface WorkspaceSession {
  id: string
  workspaceId: string
  /** Id of the operator. */
  operator: string
  /** The agent's name that visitors see. */
  displayName: string
  /** URL of the agent's picture that visitors see. */
  avatarUrl?: string
  scopes: string[]
  /** Whether it is the session of an account of the team. */
  account?: boolean
  /** ISO time. */
  expiresAt: string
}

type Credential = { link: string } | { token: string }

interface SignInNames {
  displayName: string
  /** New name of the workspace, from its first owner. */
  workspaceName?: string
}

export interface LinkDescription {
  workspaceName: string
  /** Name of the account. Absent if the sign-in needs a name. */
  name?: string
  firstOwner: boolean
  invitation: boolean
}

/** `unreachable`: the outcome is unknown. */
type CallFailure = 'refused' | 'invalid' | 'unreachable'
export type CallResult<T> = { value: T } | CallFailure

type SessionCalls = ReturnType<typeof createSessionCalls>

/** Header of all calls that use the cookie. Pages of other sites cannot send it. */
export const consoleHeader = ['X-Service-Console', '1'] as const

export function createSessionCalls(request: typeof fetch) {
  async function call<T>(path: string, input?: object): Promise<CallResult<T>> {
    const headers = new Headers([[...consoleHeader]])
    if (input) headers.set('Content-Type', 'application/json')
    try {
      const body = input && JSON.stringify(input)
      const answer = await request(`/console/session/${path}`, { method: 'POST', headers, body })
      if (answer.ok) return { value: answer.status === 204 ? undefined : await answer.json() }
      if (answer.status === 400) return 'invalid'
      return answer.status === 401 || answer.status === 403 ? 'refused' : 'unreachable'
    } catch {
      return 'unreachable'
    }
  }

  return {
    /** Resolves to undefined if this browser has no session. */
    current: () => call<WorkspaceSession | undefined>('current'),
    signIn: (credential: Credential, names: SignInNames) =>
      call<WorkspaceSession>('sign-in', { ...credential, ...names }),
    /** Returns what a link is for. Does not use it. */
    describeLink: (link: string) => call<LinkDescription>('link', { link }),
    /** Asks for a mailed link. The answer does not tell whether there is an account. */
    mailLink: (mail: string) => call<undefined>('mail', { mail }),
    /** Begins a sign-in with a passkey. Returns the options for the browser, as JSON. */
    beginPasskey: () => call<{ options: string }>('passkey/begin'),
    signInWithPasskey: (response: object) => call<WorkspaceSession>('passkey', { response: JSON.stringify(response) }),
    /** Whether operators can sign in at an identity provider, and by mail. */
    options: () => call<{ provider: boolean; mail: boolean }>('options'),
    /** Begins a sign-in at the provider. Returns the address of its page. */
    beginAtProvider: () => call<{ url: string }>('provider'),
    signOut: () => call<undefined>('sign-out'),
  }
}

import { signal } from '@preact/signals'
import type {
  CallFailure,
  CallResult,
  Credential,
  SessionCalls,
  SignInNames,
  WorkspaceSession,
} from './session-calls.ts'

export type { WorkspaceSession } from './session-calls.ts'

/** The name and the picture of an operator that visitors see. */
export interface ShownAgent {
  displayName: string
  avatarUrl?: string | undefined
}

export type SessionEnd = 'signed_out' | 'expired' | 'rejected'

export type SessionHolder = ReturnType<typeof createSessionHolder>

/** Reason of a failed sign-in at the identity provider, as the gateway names it. */
export type ProviderProblem = 'refused' | 'denied' | 'unavailable'

/** Message between the tabs of one browser. */
type TabMessage = { name: 'session-changed' | 'signed-out' | 'drafts?' } | { name: 'drafts'; count: number }

type TabChannel = Pick<BroadcastChannel, 'postMessage' | 'addEventListener' | 'removeEventListener'>

/** Maximum delay that `setTimeout` supports. */
const maxTimerMs = 2 ** 31 - 1
const retryMs = 2_000
/** How long to wait for answers of other tabs, in milliseconds. */
const tabAnswerMs = 200

/**
 * Holds the session of this browser. All tabs share it: a sign-in or sign-out in one tab takes effect
 * in all tabs.
 */
export function createSessionHolder({
  calls,
  channel,
  now,
}: {
  calls: SessionCalls
  channel: TabChannel
  now: () => number
}) {
  const current = signal<WorkspaceSession | undefined>(undefined)
  /**
   * `loading`: the session is not known yet. `unreachable`: the service does not answer. Undefined:
   * the session was read.
   */
  const loading = signal<'loading' | 'unreachable' | undefined>('loading')
  /** Reason why the last session ended. */
  const ended = signal<SessionEnd | undefined>(undefined)
  /** Secret of a sign-in link that was opened in this tab. It is never stored. */
  const link = signal<string | undefined>(undefined)
  /** Secret of a link that confirms the operator's mail address, and was opened in this tab. */
  const mailLink = signal<string | undefined>(undefined)
  /** Why the last sign-in at the identity provider failed. */
  const providerProblem = signal<ProviderProblem | undefined>(undefined)
  /** URL of the operator's picture. */
  const face = signal<string | undefined>(undefined)
  let timer: ReturnType<typeof setTimeout> | undefined
  let countDrafts = () => 0
  /**
   * Counts sign-ins and sign-outs. `load` ignores its answer if the count has changed during the
   * call.
   */
  let changes = 0

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
    const left = current.value.expiresAt - now()
    if (left <= 0) end('expired')
    else timer = setTimeout(watchExpiry, Math.min(left, maxTimerMs))
  }

  /** Reads the session of this browser. Retries while the service does not answer. */
  async function load(): Promise<void> {
    const before = changes
    const result = await calls.current()
    if (before !== changes) return
    if (typeof result === 'object') begin(result.value)
    else if (result === 'refused') end('rejected')
    else if (!current.value) {
      loading.value = 'unreachable'
      setTimeout(() => void load(), retryMs)
      return
    }
    loading.value = undefined
  }

  /** Signs in. Returns the reason of a failure, or undefined. */
  async function signIn(credential: Credential, names: SignInNames): Promise<CallFailure | undefined> {
    return accept(await calls.signIn(credential, names))
  }

  function accept(result: CallResult<WorkspaceSession>): CallFailure | undefined {
    if (typeof result !== 'object') return result
    link.value = undefined
    begin(result.value)
    channel.postMessage({ name: 'session-changed' } satisfies TabMessage)
    return undefined
  }

  /** Signs out in all tabs. Returns false if the service cannot be reached; the session then stays. */
  async function signOut(): Promise<boolean> {
    if (typeof (await calls.signOut()) !== 'object') return false
    channel.postMessage({ name: 'signed-out' } satisfies TabMessage)
    end('signed_out')
    return true
  }

  /** Returns the number of conversations with drafts, in all tabs. */
  function draftsOfAllTabs(): Promise<number> {
    return new Promise((resolve) => {
      let count = countDrafts()
      const add = ({ data }: MessageEvent<TabMessage>) => {
        if (data.name === 'drafts') count += data.count
      }
      channel.addEventListener('message', add)
      channel.postMessage({ name: 'drafts?' } satisfies TabMessage)
      setTimeout(() => {
        channel.removeEventListener('message', add)
        resolve(count)
      }, tabAnswerMs)
    })
  }

  channel.addEventListener('message', ({ data }: MessageEvent<TabMessage>) => {
    if (data.name === 'session-changed') void load()
    if (data.name === 'signed-out') end('signed_out')
    if (data.name === 'drafts?') channel.postMessage({ name: 'drafts', count: countDrafts() } satisfies TabMessage)
  })

  return {
    current,
    loading,
    providerProblem,
    calls,
    /** Reads the session after a sign-in at the identity provider, in all tabs. */
    async loadNew() {
      await load()
      channel.postMessage({ name: 'session-changed' } satisfies TabMessage)
    },
    ended,
    link,
    mailLink,
    face,
    /** Shows a changed picture of the operator in all tabs. */
    setFace(url: string | undefined) {
      face.value = url
      channel.postMessage({ name: 'session-changed' } satisfies TabMessage)
    },
    load,
    signIn,
    /** Signs in with the browser's answer. Returns the reason of a failure, or undefined. */
    signInWithPasskey: async (response: object) => accept(await calls.signInWithPasskey(response)),
    signOut,
    draftsOfAllTabs,
    /** Returns the name and picture of the signed-in operator, as visitors see them. */
    agent: (): ShownAgent => ({ displayName: current.peek()?.displayName ?? '', avatarUrl: face.peek() }),
    /** Sets the function that counts the conversations with drafts in this tab. */
    onCountDrafts(count: () => number) {
      countDrafts = count
    },
    /**
     * Ends the session if the service refused it. A late answer to a call of an earlier session must
     * not end the current session.
     */
    async refused(sessionId: string) {
      if (current.value?.id === sessionId) await load()
    },
  }
}

/** The sign-in link in the URL's fragment, or the result of a sign-in at the identity provider. */
type SignInFragment = { link: string } | { mailLink: string } | { problem: ProviderProblem } | 'signed-in'

/** Reads the fragment, and removes it from the address and from the history of this tab. */
export function takeSignInFragment({
  location,
  history,
}: Pick<Window, 'location' | 'history'>): SignInFragment | undefined {
  const found = readFragment(location.hash)
  if (found !== undefined) history.replaceState(null, '', location.pathname + location.search)
  return found
}

function readFragment(hash: string): SignInFragment | undefined {
  if (hash === '#signed-in') return 'signed-in'
  const [, name, value = ''] = /^#(sign-in|sign-in-failed|confirm-mail)=([\w-]+)$/.exec(hash) ?? []
  if (name === 'sign-in') return { link: value }
  if (name === 'confirm-mail') return { mailLink: value }
  return name === 'sign-in-failed' ? { problem: value as ProviderProblem } : undefined
}

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
  /** Expiry in milliseconds since the epoch. */
  expiresAt: number
}

export type Credential = { link: string } | { token: string }

export interface SignInNames {
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
export type CallFailure = 'refused' | 'invalid' | 'unreachable'
export type CallResult<T> = { value: T } | CallFailure

export interface SessionCalls {
  current(): Promise<CallResult<WorkspaceSession>>
  signIn(credential: Credential, names: SignInNames): Promise<CallResult<WorkspaceSession>>
  /** Returns what a link is for. Does not use it. */
  describeLink(link: string): Promise<CallResult<LinkDescription>>
  /** Asks for a mailed link. The answer does not tell whether there is an account. */
  mailLink(mail: string): Promise<CallResult<undefined>>
  /** Begins a sign-in with a passkey. Returns the options for the browser. */
  beginPasskey(): Promise<CallResult<object>>
  signInWithPasskey(response: object): Promise<CallResult<WorkspaceSession>>
  signOut(): Promise<CallResult<undefined>>
  /** Whether operators can sign in at an identity provider, and by mail. */
  options(): Promise<CallResult<{ provider: boolean; mail: boolean }>>
  /** Begins a sign-in at the provider. Returns the address of its page. */
  beginAtProvider(): Promise<CallResult<string>>
}

/**
 * Header of all calls that use the cookie. The gateway requires it, because pages of other sites
 * cannot send it.
 */
export const consoleHeader = ['X-Service-Console', '1'] as const

/** Creates the calls that sign an operator in and out. */
export function createSessionCalls(request: typeof fetch): SessionCalls {
  async function call<T>(
    path: string,
    body: unknown,
    read: (answer: Response) => Promise<{ value: T } | undefined>,
  ): Promise<CallResult<T>> {
    try {
      const answer = await request(`/console/session/${path}`, {
        method: 'POST',
        headers: {
          [consoleHeader[0]]: consoleHeader[1],
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      if (answer.ok) return (await read(answer)) ?? 'refused'
      if (answer.status === 400) return 'invalid'
      return answer.status === 401 || answer.status === 403 ? 'refused' : 'unreachable'
    } catch {
      return 'unreachable'
    }
  }

  return {
    current: () => call('current', undefined, readSession),
    signIn: (credential, names) => call('sign-in', { ...credential, ...names }, readSession),
    describeLink: (link) => call('link', { link }, async (answer) => ({ value: await answer.json() })),
    mailLink: (mail) => call('mail', { mail }, async () => ({ value: undefined })),
    beginPasskey: () =>
      call('passkey/begin', undefined, async (answer) => ({ value: JSON.parse((await answer.json()).options) })),
    signInWithPasskey: (response) => call('passkey', { response: JSON.stringify(response) }, readSession),
    options: () => call('options', undefined, async (answer) => ({ value: await answer.json() })),
    beginAtProvider: () => call('provider', undefined, async (answer) => ({ value: (await answer.json()).url })),
    signOut: () => call('sign-out', undefined, async () => ({ value: undefined })),
  }
}

/** Returns undefined for the answer without a session (204). */
async function readSession(answer: Response): Promise<{ value: WorkspaceSession } | undefined> {
  if (answer.status === 204) return undefined
  const { expiresAt, ...session } = await answer.json()
  return { value: { ...session, expiresAt: Date.parse(expiresAt) } }
}

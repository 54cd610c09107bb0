import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { ErrorCode } from '#proto/error/v1/error_pb.js'
import { invalid, ServiceError } from '../errors.ts'
import { field, line, url, validate } from '../rules.ts'
import type { ConsoleSessionStore } from './console-session-store.ts'
import type { ConsoleSessions, SignedIn } from './console-sessions.ts'
import { linkLifetimeMs, type Member, newSecret, type Passkey, secretId } from './model.ts'
import type { TeamStore } from './team-store.ts'

/** Loads the library at its first use, because it takes memory. */
const webAuthn = () => import('@simplewebauthn/server')

const maxPasskeys = 10
/** Time that a person has for the dialog of the browser, in milliseconds. */
const timeoutMs = 120_000

/** Passkeys of accounts (WebAuthn). A challenge works once, and only for who began. */
export function createPasskeys({
  store,
  attempts,
  consoleSessions,
  publicUrl,
  now,
}: {
  store: TeamStore
  attempts: Pick<ConsoleSessionStore, 'insertAttempt' | 'takeAttempt'>
  consoleSessions: Pick<ConsoleSessions, 'beginOf'>
  /** Origin of the console; empty if the browser's page names it. */
  publicUrl: string
  now: () => number
}) {
  const begin = (challenge: string, browserId: string, origin?: string) =>
    attempts.insertAttempt({
      id: attemptId(challenge),
      browserId,
      ...(origin !== undefined && { origin }),
      expiresAt: new Date(now() + linkLifetimeMs),
    })

  /** Uses up the challenge of a response. Returns undefined if this browser did not begin with it. */
  async function challengeOf(response: { response?: { clientDataJSON?: string } }, browserId: string) {
    const data = Buffer.from(String(response.response?.clientDataJSON ?? ''), 'base64url').toString()
    const challenge = String(parsed<{ challenge?: string }>(data).challenge)
    const attempt = await attempts.takeAttempt(attemptId(challenge), browserId, new Date(now()))
    return attempt && { challenge, origin: attempt.origin ?? '' }
  }

  return {
    of: store.passkeysOf,

    /** Begins a new passkey. Errors: `ValidationFailed`. */
    async begin(workspaceId: string, member: Member, sessionId: string, origin: string): Promise<string> {
      const present = await store.passkeysOf(workspaceId, member.id)
      validate(
        field('/origin', origin, (value) => (publicUrl !== '' && publicUrl !== value ? 'const' : httpUrl(value))),
        present.length >= maxPasskeys ? { path: '/passkeys', rule: 'maxItems' } : undefined,
      )
      const { hostname, origin: expected } = new URL(origin)
      const options = await (await webAuthn()).generateRegistrationOptions({
        rpName: 'Service console',
        rpID: hostname,
        userName: member.mail ?? member.name,
        userDisplayName: member.name,
        userID: Buffer.from(secretId(`${workspaceId} ${member.id}`)) as never,
        timeout: timeoutMs,
        excludeCredentials: present.map(({ id }) => ({ id })),
        authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      })
      await begin(options.challenge, sessionId, expected)
      return JSON.stringify(options)
    },

    /** Adds the new passkey. Errors: `ValidationFailed`. */
    async add(
      { workspaceId, operator, sessionId }: { workspaceId: string; operator: string; sessionId: string },
      { name, responseJson }: { name: string; responseJson: string },
    ): Promise<Passkey> {
      validate(field('/name', name.trim(), line(1, 64)))
      const response = parsed<RegistrationResponseJSON>(responseJson)
      const begun = await challengeOf(response, sessionId)
      if (!begun) throw invalid('/responseJson', 'signature')
      const found = await (await webAuthn())
        .verifyRegistrationResponse({
          response,
          expectedChallenge: begun.challenge,
          expectedOrigin: begun.origin,
          expectedRPID: new URL(begun.origin).hostname,
        })
        .catch(() => undefined)
      if (!found?.verified) throw invalid('/responseJson', 'signature')
      const { id, publicKey, counter } = found.registrationInfo.credential
      const passkey: Passkey = {
        id,
        workspaceId,
        operator,
        name: name.trim(),
        publicKey: Buffer.from(publicKey).toString('base64url'),
        counter,
        origin: begun.origin,
        createdAt: new Date(now()),
      }
      if (!(await store.addPasskey(passkey))) throw invalid('/responseJson', 'unique')
      return passkey
    },

    remove: store.removePasskeys,

    /** Begins a sign-in. Errors: `ValidationFailed`. */
    async beginSignIn(origin: string): Promise<{ optionsJson: string; browserSecret: string }> {
      validate(field('/origin', origin, httpUrl))
      const rpID = new URL(publicUrl || origin).hostname
      const options = await (await webAuthn()).generateAuthenticationOptions({
        rpID,
        timeout: timeoutMs,
        userVerification: 'required',
      })
      const browserSecret = newSecret()
      await begin(options.challenge, secretId(browserSecret))
      return { optionsJson: JSON.stringify(options), browserSecret }
    },

    /** Finishes it. Errors: `Unauthenticated`. */
    async finishSignIn(responseJson: string, browserSecret: string, replacedSecret: string): Promise<SignedIn> {
      const response = parsed<AuthenticationResponseJSON>(responseJson)
      const begun = await challengeOf(response, secretId(browserSecret))
      const passkey = await store.findPasskey(String(response.id))
      if (!begun || !passkey) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      const { workspaceId, operator, origin, id, counter } = passkey
      const found = await (await webAuthn())
        .verifyAuthenticationResponse({
          response,
          expectedChallenge: begun.challenge,
          // Not the origin of this request: a page below the console's host could forge it.
          expectedOrigin: origin,
          expectedRPID: new URL(origin).hostname,
          credential: { id, counter, publicKey: new Uint8Array(Buffer.from(passkey.publicKey, 'base64url')) },
        })
        .catch(() => undefined)
      const isUsed =
        found?.verified === true &&
        (await store.usePasskey(passkey, found.authenticationInfo.newCounter, new Date(now())))
      if (!isUsed) throw new ServiceError(ErrorCode.UNAUTHENTICATED)
      return consoleSessions.beginOf({ workspaceId, operator, method: 'passkey' }, replacedSecret)
    },
  }
}

const httpUrl = url('http', 'https')

const attemptId = (challenge: string) => secretId(`passkey ${challenge}`)

/** Parses an object. Anything else is an empty object, which no check accepts. */
function parsed<T extends object>(text: string): T {
  try {
    const value: unknown = JSON.parse(text)
    return (typeof value === 'object' && value !== null ? value : {}) as T
  } catch {
    return {} as T
  }
}

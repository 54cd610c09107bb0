import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import { type Core, dateOf } from '../core.ts'
import { invalid, ServiceError } from '../errors.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { withId } from '../mongodb/with-id.ts'
import { field, issueIf, line, url, validate } from '../rules.ts'
import { beginAccountSession, type SignedIn, takeAttempt } from './console-sessions.ts'
import { linkLifetimeMs, type Member, newSecret, type Passkey, secretId } from './model.ts'

export type PasskeyDocument = { _id: string } & Omit<Passkey, 'id'>

/** Loads the library at its first use, because it takes memory. */
const webAuthn = () => import('@simplewebauthn/server')

const maxPasskeys = 10
/** Time that a person has for the dialog of the browser. */
const timeoutMs = 120_000

// Passkeys of accounts (WebAuthn). A challenge works once, and only in the browser or session that began.

const beginChallenge = (core: Core, challenge: string, browserId: string, origin?: string) =>
  core.db.signInAttempts.insertOne({
    _id: attemptId(challenge),
    browserId,
    origin,
    expiresAt: dateOf(core, linkLifetimeMs),
  })

/** Uses up the challenge of a response. Returns undefined if this browser did not begin with it. */
async function takeChallenge(core: Core, response: { response?: { clientDataJSON?: string } }, browserId: string) {
  const data = Buffer.from(String(response.response?.clientDataJSON ?? ''), 'base64url').toString()
  const challenge = String(parsed<{ challenge?: string }>(data).challenge)
  const attempt = await takeAttempt(core, attemptId(challenge), browserId)
  return attempt ? { challenge, origin: attempt.origin ?? '' } : undefined
}

export async function listPasskeys({ db }: Core, workspaceId: string, operator?: string): Promise<Passkey[]> {
  const found = db.passkeys.find({ workspaceId, operator }).sort({ createdAt: 1 })
  return (await found.toArray()).map(withId)
}

export async function removePasskeys({ db }: Core, workspaceId: string, operator: string, id?: string) {
  await db.passkeys.deleteMany({ workspaceId, operator, ...(id !== undefined && { _id: id }) })
}

/** Errors: `ValidationFailed`. */
export async function beginPasskey(
  core: Core,
  workspaceId: string,
  member: Member,
  sessionId: string,
  origin: string,
): Promise<string> {
  const present = await listPasskeys(core, workspaceId, member.id)
  const publicUrl = core.config.PUBLIC_URL
  validate(
    field('/origin', origin, (value) => (publicUrl !== '' && publicUrl !== value ? 'const' : httpUrl(value))),
    issueIf(present.length >= maxPasskeys, '/passkeys', 'maxItems'),
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
  await beginChallenge(core, options.challenge, sessionId, expected)
  return JSON.stringify(options)
}

/** Errors: `ValidationFailed`. */
export async function addPasskey(
  core: Core,
  { workspaceId, operator, sessionId }: { workspaceId: string; operator: string; sessionId: string },
  { name, responseJson }: { name: string; responseJson: string },
): Promise<Passkey> {
  validate(field('/name', name.trim(), line(1, 64)))
  const response = parsed<RegistrationResponseJSON>(responseJson)
  const begun = await takeChallenge(core, response, sessionId)
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
  const passkey: Omit<Passkey, 'id'> = {
    workspaceId,
    operator,
    name: name.trim(),
    publicKey: Buffer.from(publicKey).toString('base64url'),
    counter,
    origin: begun.origin,
    createdAt: dateOf(core),
  }
  // A known passkey is not added again.
  if (!(await insertOnce(core.db.passkeys, { _id: id, ...passkey }))) throw invalid('/responseJson', 'unique')
  return { id, ...passkey }
}

/** `browserSecret` binds the sign-in that begins to this browser. Errors: `ValidationFailed`. */
export async function beginPasskeySignIn(core: Core, origin: string) {
  validate(field('/origin', origin, httpUrl))
  const rpID = new URL(core.config.PUBLIC_URL || origin).hostname
  const options = await (await webAuthn()).generateAuthenticationOptions({
    rpID,
    timeout: timeoutMs,
    userVerification: 'required',
  })
  const browserSecret = newSecret()
  await beginChallenge(core, options.challenge, secretId(browserSecret))
  return { optionsJson: JSON.stringify(options), browserSecret }
}

/** Errors: `Unauthenticated`. */
export async function finishPasskeySignIn(
  core: Core,
  responseJson: string,
  browserSecret: string,
  replacedSecret: string,
): Promise<SignedIn> {
  const response = parsed<AuthenticationResponseJSON>(responseJson)
  const begun = await takeChallenge(core, response, secretId(browserSecret))
  const passkey = await core.db.passkeys.findOne({ _id: String(response.id) })
  if (!begun || !passkey) throw new ServiceError('Unauthenticated')
  const { workspaceId, operator, origin, _id: id, counter } = passkey
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
  if (!found?.verified) throw new ServiceError('Unauthenticated')
  // Matches nothing if the passkey was removed, or another sign-in has used this counter.
  const used = { counter: found.authenticationInfo.newCounter, usedAt: dateOf(core) }
  const { matchedCount } = await core.db.passkeys.updateOne({ _id: id, counter }, { $set: used })
  if (matchedCount === 0) throw new ServiceError('Unauthenticated')
  return beginAccountSession(core, { workspaceId, operator, method: 'passkey' }, replacedSecret)
}

const httpUrl = url('http', 'https')

const attemptId = (challenge: string) => secretId(`passkey ${challenge}`)

/** Parses an object. For anything else returns an empty object, which no check accepts. */
function parsed<T extends object>(text: string) {
  try {
    const value: unknown = JSON.parse(text)
    return (typeof value === 'object' && value !== null ? value : {}) as T
  } catch {
    return {} as T
  }
}

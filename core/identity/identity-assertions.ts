import { createHash } from 'node:crypto'
import { compactVerify, errors } from 'jose'
import { contractLimits } from '../../contract/limits.ts'
import type { Core } from '../core.ts'
import { ServiceError } from '../errors.ts'
import { insertOnce } from '../mongodb/insert-each.ts'
import { isObject, text } from '../rules.ts'
import type { Identity, IdentityContextValue } from '../sessions/model.ts'
import type { Installation } from '../workspaces/model.ts'

/** Verified claims of a host's backend about a visitor. An installation accepts each nonce once until `endsAt`. */
interface VerifiedAssertion extends Pick<Identity, 'externalSubject' | 'displayName' | 'context'> {
  nonce: string
  endsAt: Date
}

/** A rule of assertions (contract, section 7, rule 11). `type` is also the form, and `context` also `name`. */
type AssertionRule = 'audience' | 'signature' | 'lifetime' | 'nonce' | 'subject' | 'type' | 'clock' | 'context'

const type = 'service-visitor-identity+jwt'
const algorithm = 'HS256'
/** Tolerated clock difference of hosts that sign identity assertions. */
const clockSkewSeconds = 30
const contextMaxKeys = 10
const contextMaxBytes = 1_024

const subject = text(1, 256)
const nonce = text(8, 128)
const name = text(0, 128)
const contextKey = text(1, 64)
const contextText = text(0, Number.POSITIVE_INFINITY)

/**
 * Returns the claims of an assertion for this installation (contract, «Identity assertion»), also if it was
 * used before. Errors: `IdentityAssertionInvalid` with the failed rules as `issues`,
 * `IdentityAssertionExpired`.
 */
export async function verifyAssertion(
  core: Core,
  assertion: string,
  installation: Installation,
): Promise<VerifiedAssertion> {
  const claims = await readSigned(core, assertion, installation)
  if (!isObject(claims)) throw invalid('type')
  const { aud, sub, iat, exp, nbf = 0, jti, name: displayName, ctx } = claims
  const time = core.now() / 1000
  const latest = time + clockSkewSeconds
  const context = isObject(ctx) ? readContext(ctx) : undefined

  const isSubject = isText(sub, subject)
  const isNonce = isText(jti, nonce)
  const isLifetime =
    isTime(iat) && isTime(exp) && exp > iat && exp - iat <= core.config.IDENTITY_ASSERTION_LIFETIME_SECONDS
  const isName = displayName === undefined || isText(displayName, name)
  const failed: Record<AssertionRule, boolean> = {
    // `readSigned` has checked these two.
    type: false,
    signature: false,
    audience: aud !== installation.publicSiteKey,
    subject: !isSubject,
    nonce: !isNonce,
    lifetime: !isLifetime,
    clock: !isTime(nbf) || nbf > latest || (isTime(iat) && iat > latest),
    context: !isName || (ctx !== undefined && context === undefined),
  }
  const rules = (Object.keys(failed) as AssertionRule[]).filter((rule) => failed[rule])
  if (rules.length > 0 || !isSubject || !isNonce || !isLifetime || !isName) throw invalid(...rules)
  if (exp + clockSkewSeconds <= time) throw new ServiceError('IdentityAssertionExpired')

  return {
    externalSubject: sub,
    displayName: displayName || undefined,
    context: context?.length ? context : undefined,
    nonce: jti,
    endsAt: new Date((exp + clockSkewSeconds) * 1000),
  }
}

/** Returns the payload if an accepted secret signed it as an identity assertion. */
async function readSigned(core: Core, assertion: string, { identitySecrets }: Installation): Promise<unknown> {
  if (assertion.length > contractLimits.assertionMaxLength) throw invalid('type')
  try {
    const { payload, protectedHeader } = await compactVerify(
      assertion,
      ({ kid }) => {
        const secret = identitySecrets.find((live) => live.kid === kid)
        if (!secret) throw new errors.JWKSNoMatchingKey()
        return new TextEncoder().encode(core.secretBox.open(secret.sealed))
      },
      { algorithms: [algorithm] },
    )
    if (protectedHeader.typ === type) return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(payload))
  } catch (error) {
    if (error instanceof errors.JOSEError) throw invalid(error instanceof errors.JWSInvalid ? 'type' : 'signature')
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error
  }
  throw invalid('type')
}

/** Returns the entries of the context; undefined when it is not a small flat object. */
function readContext(context: object): VerifiedAssertion['context'] {
  const entries = Object.entries(context)
  const isFlat = entries.every(
    ([key, value]) => contextKey(key) === undefined && key !== '__proto__' && isFlatValue(value),
  )
  const isSmall = entries.length <= contextMaxKeys && Buffer.byteLength(JSON.stringify(context)) <= contextMaxBytes
  return isFlat && isSmall ? entries : undefined
}

function invalid(...rules: AssertionRule[]) {
  const issues = rules.map((rule) => ({ path: '/assertion', rule }))
  return new ServiceError('IdentityAssertionInvalid', { issues })
}

function isText(value: unknown, rule: (text: string) => string | undefined): value is string {
  return typeof value === 'string' && rule(value) === undefined
}

/** Accepts whole seconds since 1970. */
function isTime(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function isFlatValue(value: unknown): value is IdentityContextValue {
  return typeof value === 'string'
    ? contextText(value) === undefined
    : typeof value === 'boolean' || Number.isFinite(value)
}

export interface NonceDocument {
  _id: string
  operation: string
  expiresAt: Date
}

/**
 * Marks a nonce as used by one operation, which may use it again after its process died. Returns false
 * when another operation has used it. Of concurrent operations, exactly one succeeds.
 */
export async function consumeNonce(
  { db }: Core,
  used: { publicSiteKey: string; nonce: string; operation: string; expiresAt: Date },
  now: Date,
): Promise<boolean> {
  const { publicSiteKey, nonce, operation, expiresAt } = used
  const _id = createHash('sha256')
    .update(JSON.stringify([publicSiteKey, nonce]))
    .digest('base64url')
  if (await insertOnce(db.nonces, { _id, operation, expiresAt })) return true
  // The record of an earlier use may have expired, but is not deleted yet.
  const retakable = { _id, $or: [{ operation }, { expiresAt: { $lte: now } }] }
  return (await db.nonces.updateOne(retakable, { $set: { operation, expiresAt } })).matchedCount === 1
}

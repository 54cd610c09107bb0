import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, UnsecuredJWT } from 'jose'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { listen } from '../../test/support/listen.ts'
import { damaged } from '../../test/support/nasty-values.ts'
import { signWorkspaceSession, workspaceSessionSecret } from '../../test/support/workspace-session.ts'
import type { ServiceError } from '../errors.ts'
import { createKeyring } from '../keys/keyring.ts'
import { createAccess } from './access.ts'
import {
  createWorkspaceSessions,
  operatorScopes,
  parseWorkspaceSessionSecrets,
  type WorkspaceSessionKeys,
} from './workspace-sessions.ts'

const start = Date.UTC(2030, 0, 1)
const time = { now: start }
const now = () => time.now
/** Longer than a busy machine takes for an answer. */
const jwksTimeoutMs = 60_000
const keyring = createKeyring([{ kid: 'k1', secret: new Uint8Array(32).fill(1) }])

function accessWith(keys: Partial<WorkspaceSessionKeys> = {}) {
  time.now = start
  const secrets = parseWorkspaceSessionSecrets(workspaceSessionSecret)
  const sessions = createWorkspaceSessions({ secrets, jwksTimeoutMs, jwksFreshMs: 600_000, ...keys }, now)
  const access = createAccess(keyring, now, { workspaceSessions: sessions })
  return {
    access,
    open: (token: string, scope = 'leads:deliver') => access.authenticate(`Bearer ${token}`, scope),
    refusal: (token: string, scope = 'leads:deliver') =>
      access.authenticate(`Bearer ${token}`, scope).then(
        () => 'accepted',
        ({ code }: ServiceError) => code,
      ),
  }
}

/** Starts an HTTP server with a key set, like that of an identity provider. */
async function startKeySet(alg: string) {
  const keySet = { keys: [] as object[], asked: 0, status: 200, silent: false, url: '' }
  const limit = new AbortController()
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(limit.signal)
  const server = createServer((_request, response) => {
    keySet.asked += 1
    // The time limit passes while the answer is awaited.
    if (keySet.silent) return limit.abort(new DOMException('late', 'TimeoutError'))
    response.writeHead(keySet.status, { 'content-type': 'application/json' }).end(JSON.stringify(keySet))
  })
  const { url } = await listen(server)
  onTestFinished(() => void vi.restoreAllMocks())
  keySet.url = `${url}/keys`
  async function newKey(kid: string) {
    const { publicKey, privateKey } = await generateKeyPair(alg)
    keySet.keys.push({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' })
    return (change: Record<string, unknown> = {}) =>
      signWorkspaceSession({ now: now(), key: privateKey, header: { alg, kid }, claims: change })
  }
  return { keySet, newKey }
}

describe('a workspace session', () => {
  it('authorizes only calls that require one of its scopes, and only in its workspace', async () => {
    const { open, refusal } = accessWith()
    const token = await signWorkspaceSession({ now: start, claims: { scope: 'leads:deliver messages:read' } })
    expect(await open(token, 'messages:read')).toMatchObject({ subject: 'operator_1', workspaceId: 'ws_1' })
    expect(await refusal(token, 'messages:write')).toBe('PermissionDenied')
  })

  it("gets only operators' scopes, even if it claims others", async () => {
    const { open, refusal } = accessWith()
    const claimed = [...operatorScopes, 'visitors:act', 'deliveries:work', 'cores:announce', '*', 'admin'].join(' ')
    const token = await signWorkspaceSession({ now: start, claims: { scope: claimed } })
    for (const scope of ['visitors:act', 'deliveries:work', 'cores:announce', '*', '', 'admin'])
      expect(await refusal(token, scope), scope).toBe('PermissionDenied')
    expect((await open(token)).scopes).toEqual(operatorScopes)
  })

  it.each<[string, Record<string, unknown>]>([
    ['no expiry', { exp: undefined }],
    ['an expiry in the past', { exp: start / 1000 - 31 }],
    ['a start in the future', { nbf: start / 1000 + 31 }],
    ['no workspace', { wid: undefined }],
    ['an empty workspace', { wid: '' }],
    ['a workspace that is not a string', { wid: ['ws_1'] }],
    ['no operator', { sub: undefined }],
    ['too long an operator name', { sub: 'x'.repeat(257) }],
    ['no scope', { scope: undefined }],
    ['scopes as a list', { scope: ['leads:deliver'] }],
    ['no audience', { aud: undefined }],
    ['another audience', { aud: 'service.widget.public-api' }],
    ['the audience of service tokens', { aud: 'service.core' }],
  ])('with %s is rejected', async (_, claims) => {
    expect(await accessWith().refusal(await signWorkspaceSession({ now: start, claims }))).toBe('Unauthenticated')
  })

  it('is rejected as a service token, and a service token is rejected as a workspace session', async () => {
    const { refusal, access } = accessWith()
    const serviceKey = keyring.current('service-token')
    const header = { typ: 'service-token+jwt', kid: serviceKey.kid }
    const claims = { aud: ['service.core', 'service.workspace'], scope: 'visitors:act leads:deliver' }
    const both = await signWorkspaceSession({ now: start, key: serviceKey.key, header, claims })
    expect(await refusal(both)).toBe('Unauthenticated')
    const signedHere = await signWorkspaceSession({ now: start, header, claims: { aud: 'service.core' } })
    expect(await refusal(signedHere)).toBe('Unauthenticated')
    const service = await access.issue({ subject: 'desk', scopes: ['leads:deliver'] })
    expect((await access.authenticate(`Bearer ${service}`, 'leads:deliver')).workspaceId).toBeUndefined()
  })

  it('is rejected without a signature, with a broken signature or with a signature of another key', async () => {
    const { refusal } = accessWith()
    const good = await signWorkspaceSession({ now: start })
    const unsigned = new UnsecuredJWT({ wid: 'ws_1', scope: 'leads:deliver' })
      .setAudience('service.workspace')
      .setSubject('operator_1')
      .setExpirationTime(start / 1000 + 60)
      .encode()
    const other = await signWorkspaceSession({ now: start, key: new Uint8Array(32).fill(9) })
    const [head = '', , signature = ''] = good.split('.')
    const payload = Buffer.from(JSON.stringify({ aud: 'service.workspace', wid: 'ws_2' })).toString('base64url')
    for (const token of [unsigned, other, `${head}.${payload}.${signature}`, damaged(good)])
      expect(await refusal(token)).toBe('Unauthenticated')
  })

  it('tolerates 30 seconds of clock skew, and is not cached beyond its expiry', async () => {
    const { open, refusal } = accessWith()
    const token = await signWorkspaceSession({ now: start, claims: { exp: start / 1000 + 10 } })
    await open(token)
    time.now = start + 39_000
    await open(token)
    time.now = start + 40_000
    expect(await refusal(token)).toBe('Unauthenticated')
  })

  it('is rejected while no key is configured', async () => {
    expect(await accessWith({ secrets: [] }).refusal(await signWorkspaceSession({ now: start }))).toBe(
      'Unauthenticated',
    )
  })
})

describe('the secrets of workspace sessions', () => {
  it('are all accepted, so that a rotation ends no session', async () => {
    const secrets = parseWorkspaceSessionSecrets(`the-new-one-of-thirty-two-bytes-and-more,${workspaceSessionSecret}`)
    const { open } = accessWith({ secrets })
    await open(await signWorkspaceSession({ now: start }))
    await open(await signWorkspaceSession({ now: start, key: secrets[0]! }))
  })

  it('that are too short are rejected with an error that does not show them', () => {
    const parse = () => parseWorkspaceSessionSecrets(`${workspaceSessionSecret},hunter2`)
    expect(parse).toThrow(/^WORKSPACE_SESSION_SECRET: number 2 of the list has fewer than 32 bytes$/)
  })

  it('verify only sessions of the configured issuer', async () => {
    const { open, refusal } = accessWith({ issuer: 'https://login.example' })
    await open(await signWorkspaceSession({ now: start, claims: { iss: 'https://login.example' } }))
    expect(await refusal(await signWorkspaceSession({ now: start }))).toBe('Unauthenticated')
  })
})

describe('a key set', () => {
  it.each(['RS256', 'ES256', 'EdDSA'])('verifies %s signatures and is fetched once for many sessions', async (alg) => {
    const { keySet, newKey } = await startKeySet(alg)
    const { open } = accessWith({ jwksUrl: keySet.url, secrets: [] })
    const sign = await newKey('a')
    for (const sub of ['operator_1', 'operator_2', 'operator_3'])
      expect((await open(await sign({ sub }))).subject).toBe(sub)
    expect(keySet.asked).toBe(1)
  })

  it('can be combined with secrets, and its public key is rejected as an HS256 secret', async () => {
    const { keySet, newKey } = await startKeySet('RS256')
    const { open, refusal } = accessWith({ jwksUrl: keySet.url })
    await open(await signWorkspaceSession({ now: start }))
    const sign = await newKey('a')
    await open(await sign())
    const publicKey = new TextEncoder().encode(JSON.stringify(keySet.keys[0]))
    expect(await refusal(await signWorkspaceSession({ now: start, key: publicKey, header: { kid: 'a' } }))).toBe(
      'Unauthenticated',
    )
  })

  it('rejects unknown keys, other audiences and missing expiries', async () => {
    const { keySet, newKey } = await startKeySet('ES256')
    const { refusal } = accessWith({ jwksUrl: keySet.url })
    const sign = await newKey('a')
    const { privateKey } = await generateKeyPair('ES256')
    const stranger = await signWorkspaceSession({
      now: start,
      key: privateKey,
      header: { alg: 'ES256', kid: 'unknown' },
    })
    expect(await refusal(stranger)).toBe('Unauthenticated')
    expect(await refusal(await sign({ aud: 'another.app' }))).toBe('Unauthenticated')
    expect(await refusal(await sign({ exp: undefined }))).toBe('Unauthenticated')
  })

  it.each([
    ['fails', { status: 500 }],
    ['does not respond', { silent: true }],
    ['redirects', { status: 302 }],
  ])('that %s makes calls with a new session fail as unavailable, but cached sessions still work', async (_, fault) => {
    const { keySet, newKey } = await startKeySet('ES256')
    const { open, refusal } = accessWith({ jwksUrl: keySet.url, jwksFreshMs: 0 })
    const sign = await newKey('a')
    const known = await sign()
    await open(known)
    Object.assign(keySet, fault)
    expect(await refusal(await sign({ sub: 'operator_2' }))).toBe('ServiceUnavailable')
    expect(AbortSignal.timeout).toHaveBeenLastCalledWith(jwksTimeoutMs)
    await open(known)
    expect(await refusal(await signWorkspaceSession({ now: start, claims: { exp: 1 } }))).toBe('Unauthenticated')
  })

  it('that is unreachable makes calls with a session fail as unavailable', async () => {
    const { newKey } = await startKeySet('ES256')
    const { refusal } = accessWith({ jwksUrl: 'http://127.0.0.1:1/keys' })
    const sign = await newKey('a')
    expect(await refusal(await sign())).toBe('ServiceUnavailable')
  })

  it('is not fetched for invalid tokens', async () => {
    const { keySet } = await startKeySet('ES256')
    const { refusal, access } = accessWith({ jwksUrl: keySet.url })
    await refusal('a.b.c')
    await refusal(await signWorkspaceSession({ now: start, key: new Uint8Array(32).fill(8) }))
    expect(await access.authenticate(null, 'leads:deliver').catch(({ code }: ServiceError) => code)).toBe(
      'Unauthenticated',
    )
    expect(keySet.asked).toBe(0)
  })
})

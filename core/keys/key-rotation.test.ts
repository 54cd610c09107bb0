import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { afterAll, describe, expect, it } from 'vitest'
import { signAssertion } from '../../test/support/assertion.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import { banSession } from '../bans/bans.ts'
import { readCoreConfig } from '../config.ts'
import { createCore, type RunningCore } from '../context.ts'
import { rekey } from '../database/rekey.ts'
import { createSubscription } from '../deliveries/subscriptions.ts'
import { identifyVisitor } from '../identity/identification.ts'
import { visitorAccessOf } from '../sessions/visitor-access.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import { createSession } from '../visitors/sessions.ts'
import { wakeupsOf } from '../wakeups/wakeups.ts'
import {
  createConnection,
  createInstallation,
  createWorkspace,
  findInstallations,
  listInstallations,
  rotateIdentitySecret,
} from '../workspaces/workspaces.ts'
import { createKeyring, parseSecretKeys } from './keyring.ts'
import { createSecretBox } from './secret-box.ts'

const { uri, name } = testDatabase()
const cores: RunningCore[] = []
afterAll(() => Promise.all(cores.map((core) => core.stop())))

const key = (kid: string) => `${kid}:${Buffer.alloc(32, kid).toString('base64')}`
const origin = 'https://shop.example'

async function coreWith(...kids: string[]): Promise<RunningCore> {
  const core = createCore({
    config: readCoreConfig({}),
    secretKeys: parseSecretKeys(kids.map(key).join(',')),
    database: await openTestDatabase({ uri, name }),
    logger: pino({ level: 'silent' }),
  })
  cores.push(core)
  return core
}

async function rekeyWith(core: RunningCore, ...kids: string[]) {
  const keyring = createKeyring(parseSecretKeys(kids.map(key).join(',')))
  return rekey(core.database.collections, createSecretBox(keyring), kids[0]!)
}

describe('the secret keys', () => {
  it('the secret keys can be replaced one by one, and verified visitors and bans are still recognized', async () => {
    const first = await coreWith('k1')
    const { workspaceId } = await createWorkspace(first, 'Shop')
    const { connectionId } = await createConnection(first, workspaceId, 'Site', undefined)
    const { installation, identitySecret } = await createInstallation(
      first,
      connectionId,
      { origins: [origin] },
      undefined,
    )
    const siteKey = installation.publicSiteKey
    const destination = {
      workspaceId,
      destinationUrl: 'https://93.184.216.34/hook',
      mappedFields: [],
      automatic: false,
      headers: [{ name: 'x-key', value: 'header value' }],
    }
    const { subscriptionId } = await createSubscription(first, destination, { subject: 'desk' })
    const expiresAt = new Date(Date.now() + 3_600_000)
    const { consoleSessions, signInAttempts } = first.database.collections
    await consoleSessions.insertOne({
      _id: 'session',
      method: 'provider',
      workspaceId,
      operator: 'ada',
      displayName: 'Ada',
      scopes: [],
      createdAt: new Date(),
      expiresAt,
      provider: {
        issuer: 'https://login.example',
        sealed: first.secretBox.seal('refresh token'),
        recheckAt: expiresAt,
      },
    })
    await signInAttempts.insertOne({
      _id: 'a',
      browserId: 'b',
      sealed: first.secretBox.seal('begun sign-in'),
      expiresAt,
    })
    const begin = async (core: RunningCore, clientInstanceId: string) => {
      const request = { publicSiteKey: siteKey, origin, clientInstanceId, idempotencyKey: randomUUID() }
      return (await createSession(core, request)).content
    }
    /** Starts a session and identifies its visitor as `sub`. Returns the id of the conversation. */
    const conversationOf = async (core: RunningCore, sub: string) => {
      const { accessGrant } = await begin(core, randomUUID())
      const assertion = signAssertion({ siteKey, ...identitySecret }, { claims: { sub } })
      const credentials = { accessGrant, origin }
      const { content } = await identifyVisitor(core, { credentials, assertion, idempotencyKey: randomUUID() })
      return content.conversationId
    }
    const known = await conversationOf(first, 'ada')
    const banned = await begin(first, 'rude browser')
    await banSession(first, banned.sessionId, 'rude', undefined)

    const old = await begin(first, 'held')
    for (const kids of [['k2', 'k1'], ['k2'], ['k3', 'k2'], ['k3']]) {
      // Seals the stored secrets with the new key before the old key is removed, as `npm run
      // migrate -- --rekey` does.
      if (kids.length === 1) {
        const { inUse } = await rekeyWith(first, kids[0]!, kids[0] === 'k2' ? 'k1' : 'k2')
        expect(Object.keys(inUse)).toEqual(kids)
      }
      const core = await coreWith(...kids)
      expect([kids, await conversationOf(core, 'ada')]).toEqual([kids, known])
      await expect(begin(core, 'rude browser')).rejects.toThrow('VisitorBanned')
      // The grant was signed with k1, so it is valid while k1 is accepted.
      const credentials = { accessGrant: old.accessGrant, origin }
      if (kids.includes('k1')) await visitorAccessOf(core).authorize(credentials)
      else await expect(visitorAccessOf(core).authorize(credentials)).rejects.toThrow('GrantInvalid')
    }
    const [kept] = await first.database.collections.leadSubscriptions.find({ _id: subscriptionId }).toArray()
    const box = createSecretBox(createKeyring(parseSecretKeys(key('k3'))))
    expect(box.open(kept!.secrets[0]!.sealed)).toMatch(/^whsec_/)
    expect(box.open(kept!.headers![0]!.sealed)).toBe('header value')
    expect(box.open(kept!.destination!.sealed)).toBe(destination.destinationUrl)
    const [operator] = await first.database.collections.consoleSessions.find().toArray()
    expect(box.open(operator!.provider!.sealed)).toBe('refresh token')
    const [attempt] = await first.database.collections.signInAttempts.find().toArray()
    expect(box.open(attempt!.sealed!)).toBe('begun sign-in')
  })

  it('every stored secret stays readable when one core rotates a secret while another core re-encrypts all secrets (rekey)', async () => {
    const [one, two] = await Promise.all([coreWith('k4', 'k3'), coreWith('k4', 'k3')])
    const [installation] = await listInstallations(one!, (await one!.database.collections.workspaces.findOne({}))!._id)
    const [, secret] = await Promise.all([
      rekeyWith(one!, 'k4', 'k3'),
      rotateIdentitySecret(two!, installation!.publicSiteKey, undefined),
    ])
    await rekeyWith(one!, 'k4', 'k3')
    const [now] = await findInstallations(one!, [installation!.publicSiteKey])
    expect(now!.identitySecrets[0]!.kid).toBe(secret.kid)
    const box = createSecretBox(createKeyring(parseSecretKeys(key('k4'))))
    for (const { sealed } of now!.identitySecrets) box.open(sealed)
    expect(box.open(now!.identitySecrets[0]!.sealed)).toBe(secret.secret)
  })
})

describe('the key that signs', () => {
  it('is the first one that every live core has announced', () => {
    let time = 0
    const keyring = createKeyring(parseSecretKeys(['k2', 'k1'].map(key).join()), () => time)
    const chosen = () => {
      keyring.choose()
      return keyring.current('access-grant').kid
    }
    expect(chosen()).toBe('k2')
    keyring.announcedBy('old', ['k1'])
    keyring.announcedBy('new', ['k2', 'k1'])
    expect(chosen()).toBe('k1')
    time += 44_000
    keyring.announcedBy('new', ['k2', 'k1'])
    expect(chosen()).toBe('k1')
    // The old core has died.
    time += 2_000
    expect(chosen()).toBe('k2')
    keyring.announcedBy('last step', ['k2'])
    expect(chosen()).toBe('k2')
    keyring.announcedBy('started again with its old keys', ['k1'])
    expect(chosen()).toBe('k2')
    time += 50_000
    keyring.announcedBy('foreign', ['k9'])
    expect(chosen()).toBe('k2')
  })

  it('makes grants of a new core valid on a core that does not know the new key yet', async () => {
    const database = testDatabase()
    const start = async (...kids: string[]) => {
      const core = createCore({
        config: readCoreConfig({}),
        secretKeys: parseSecretKeys(kids.map(key).join(',')),
        database: await openTestDatabase(database),
        logger: pino({ level: 'silent' }),
      })
      cores.push(core)
      core.start()
      await wakeupsOf(core).caughtUp(60_000)
      return core
    }
    const old = await start('k1')
    const { workspaceId } = await createWorkspace(old, 'Shop')
    const { connectionId } = await createConnection(old, workspaceId, 'Site', undefined)
    const { installation } = await createInstallation(old, connectionId, { origins: [origin] }, undefined)
    const core = await start('k2', 'k1')
    const request = { publicSiteKey: installation.publicSiteKey, origin, clientInstanceId: 'b', idempotencyKey: 'key' }
    const { accessGrant, renewalToken } = (await createSession(core, request)).content
    await visitorAccessOf(old).authorize({ accessGrant, origin })
    expect(renewalToken).toMatch(/^k1\./)
    expect(old.secretBox.open(core.secretBox.seal('secret'))).toBe('secret')
  })
})

import { describe, expect, it } from 'vitest'
import { SubscriptionPurpose } from '#proto/lead/v1/subscription_pb.js'
import { someOf } from '../../test/support/is-long.ts'
import { testClient } from '../../test/support/test-database.ts'
import type { IdentityProvider } from '../operators/identity-provider.ts'
import {
  beginProviderSignIn,
  finishProviderSignIn,
  identityProviderOf,
  recheckProviderSessions,
} from '../operators/provider-sign-in.ts'
import { idsKey } from '../sessions/visitor-ids.ts'
import { testDeliveries } from '../test/deliveries.ts'
import { createConnection, createInstallation, createWorkspace, updateInstallation } from '../workspaces/workspaces.ts'

// Each stored secret was entered or created for one owner, such as a destination, a provider or an installation. The
// functions in `places` change this owner and return all that is then sent. The secret must not be in it.

const test = testDeliveries({ started: true })

/** The secrets that must not be sent after a change, and everything that is sent after it. */
interface Change {
  secrets: string[]
  travels: string
}

const present = 'https://crm.example/hooks/URL-SECRET'
const moves = {
  'to another host': 'https://other.example/hooks',
  'to another port': 'https://crm.example:8443/hooks',
  'to another scheme': 'http://crm.example/hooks',
}

/** Moves the destination of a subscription, and returns what the new one gets. */
async function moved(purpose: SubscriptionPurpose, destinationUrl: string): Promise<Change> {
  const { operator } = await test.newScene()
  const headers = [{ name: 'authorization', value: 'HEADER-SECRET' }]
  const { subscriptionId, secret } = await operator.createSubscription({ destinationUrl: present, headers, purpose })
  const rotated = await operator.rotateSubscriptionSecret({ subscriptionId })
  await operator.updateSubscription({ subscriptionId, destinationUrl })
  await operator.sendTestDelivery({ subscriptionId, idempotencyKey: subscriptionId })
  const [claimed] = await (await test.worker()).claim()
  await test.clear()
  const { url, headers: sent, body } = claimed!
  expect(url).toBe(destinationUrl)
  const signing = [secret, rotated.secret].flatMap((text) => [text, text.slice('whsec_'.length)])
  return {
    secrets: ['URL-SECRET', 'HEADER-SECRET', ...signing],
    travels: JSON.stringify([url, sent, new TextDecoder().decode(body)]),
  }
}

const destinationChanges = Object.fromEntries(
  [SubscriptionPurpose.LEADS, SubscriptionPurpose.OPERATIONAL_EVENTS].flatMap((purpose) =>
    Object.entries(moves).map(([name, to]) => [
      `${SubscriptionPurpose[purpose].toLowerCase()}: ${name}`,
      () => moved(purpose, to),
    ]),
  ),
)

/** Records what a provider is asked. */
function providerAt(issuer: string, asked: string[] = []): IdentityProvider {
  const identity = { operator: 'ada', displayName: 'Ada', scopes: ['messages:read'], refreshToken: 'REFRESH-SECRET' }
  const answer = async (...given: unknown[]) => {
    asked.push(JSON.stringify(given))
    const { _id } = (await test.cores[0]!.database.collections.workspaces.findOne({}))!
    return { ...identity, workspaceId: _id }
  }
  return { issuer, signInUrl: async ({ state }) => `${issuer}/?state=${state}`, finish: answer, refresh: answer }
}

function signInAt(provider: IdentityProvider) {
  const core = test.cores[0]!
  identityProviderOf.set(core, provider)
  return {
    begin: (origin: string) => beginProviderSignIn(core, origin, ''),
    finish: (callback: Parameters<typeof finishProviderSignIn>[1]) => finishProviderSignIn(core, callback),
    recheck: () => recheckProviderSessions(core),
  }
}
const origin = 'https://gateway.example'

async function begunSignIn(provider: IdentityProvider) {
  await test.newScene()
  const { url, browserSecret } = await signInAt(provider).begin(origin)
  return { origin, parameters: `code=CODE-SECRET&state=${new URL(url).searchParams.get('state')}`, browserSecret }
}

const issuers = { 'another issuer': 'https://b.example', 'the issuer over http': 'http://a.example' }
const providerChanges = (run: (asked: string[], other: string) => Promise<unknown>) =>
  Object.fromEntries(
    Object.entries(issuers).map(([name, other]) => [
      name,
      async (): Promise<Change> => {
        const asked: string[] = []
        await run(asked, other)
        return { secrets: ['SECRET'], travels: asked.join() }
      },
    ]),
  )

/** Changes an installation and returns the answers. Nothing else is sent. */
async function changedInstallation(settings: object): Promise<Change> {
  const core = test.cores[0]!
  const { workspaceId } = await createWorkspace(core, 'Shop')
  const { connectionId } = await createConnection(core, workspaceId, 'Site', undefined)
  const made = await createInstallation(core, connectionId, { origins: ['https://a.example'] }, undefined)
  const { publicSiteKey } = made.installation
  const changed = await updateInstallation(core, publicSiteKey, settings, undefined)
  return { secrets: [made.identitySecret.secret], travels: JSON.stringify(changed) }
}

const places: Record<string, Record<string, () => Promise<Change>>> = {
  'leadSubscriptions.destination.sealed': destinationChanges,
  'leadSubscriptions.headers.sealed': destinationChanges,
  // A signing secret stays when the destination moves, because requests have only signatures.
  'leadSubscriptions.secrets.sealed': destinationChanges,
  'consoleSessions.provider.sealed': providerChanges(async (asked, other) => {
    await signInAt(providerAt('https://a.example')).finish(await begunSignIn(providerAt('https://a.example')))
    test.advance(120_000)
    await signInAt(providerAt(other, asked)).recheck()
  }),
  'signInAttempts.sealed': providerChanges(async (asked, other) => {
    const begun = await begunSignIn(providerAt('https://a.example'))
    await expect(signInAt(providerAt(other, asked)).finish(begun)).rejects.toThrow('Unauthenticated')
  }),
  'installations.identitySecrets.sealed': {
    'other origins': () => changedInstallation({ origins: ['https://b.example'] }),
    disabled: () => changedInstallation({ enabled: false }),
  },
  // The key with which ids are hashed belongs to the database and is sent to nobody.
  'keys.sealed': {},
}

const table = Object.entries(places).flatMap(([place, changes]) =>
  Object.entries(changes).map(([name, change]) => [place, name, change] as const),
)

describe('a stored secret', () => {
  it.each(someOf(table, 4))('at %s does not travel after a change: %s', async (_place, _name, change) => {
    const { secrets, travels } = await change()
    expect(secrets.length).toBeGreaterThan(0)
    for (const secret of secrets) expect(travels).not.toContain(secret)
  })

  it('is at a place that the table lists', async () => {
    const { secretBox } = test.cores[0]!
    await idsKey(test.cores[0]!)
    const provider = providerAt('https://a.example')
    await signInAt(provider).finish(await begunSignIn(provider))
    await begunSignIn(provider)
    await changedInstallation({ enabled: true })
    const headers = [{ name: 'authorization', value: 'x' }]
    await (await test.newScene()).operator.createSubscription({ destinationUrl: present, headers })
    const found = new Set<string>()
    const isSealed = (text: string) => {
      try {
        secretBox.open(text)
        return true
      } catch {
        return false
      }
    }
    const visit = (value: unknown, path: string) => {
      if (typeof value === 'string' && isSealed(value)) found.add(path)
      if (Array.isArray(value)) for (const each of value) visit(each, path)
      else if (value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype)
        for (const [name, each] of Object.entries(value)) visit(each, `${path}.${name}`)
    }
    for (const { name } of await testClient().db(test.name).listCollections().toArray())
      for await (const document of testClient().db(test.name).collection(name).find()) visit(document, name)
    expect([...found].toSorted()).toEqual(Object.keys(places).toSorted())
  })
})

import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { visitorOfSession } from '../privacy/visitor-data.ts'
import { codeOf, hasFailed, testCores } from '../test/cores.ts'
import { issuesOf } from '../test/deliveries.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { site } from '../test/visitor-credentials.ts'
import { finishErasures } from '../test/visitor-marks.ts'
import { createConnection, createInstallation, createWorkspace, findInstallation } from './workspaces.ts'

const cores = testCores({ count: 2 })

const clients = (core = cores.core) => clientsOf(core, cores.workspaceId)
/** Creates an installation without a policy change. */
async function newSiteKey(): Promise<string> {
  const { connectionId } = await createConnection(cores.core, cores.workspaceId, 'Site', undefined)
  const made = await createInstallation(cores.core, connectionId, { origins: [site] }, undefined)
  return made.installation.publicSiteKey
}

const changesOf = async (target: string) => (await (await clients()).workspaces.listPolicyChanges({ target })).changes

it('the record of policy changes shows who changed which setting of an installation, once per operation', async () => {
  const { workspaces } = await clients()
  const siteKey = await newSiteKey()
  const consent = { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: 'v1' }
  const idempotencyKey = randomUUID() as string
  for (const { workspaces: caller } of [await clients(), await clients(cores.other)])
    await caller.updateInstallation({ siteKey, capabilities: { typing: false }, consent, idempotencyKey })
  await workspaces.updateInstallation({ siteKey, enabled: false, origins: [site] })
  await workspaces.rotateIdentitySecret({ siteKey })
  expect(await changesOf(siteKey)).toMatchObject([
    { actor: 'ada', action: 'RotateIdentitySecret', settings: [], confirmed: true },
    {
      action: 'UpdateInstallation',
      settings: [
        { name: 'enabled', value: 'false' },
        { name: 'origins', value: JSON.stringify([site]) },
      ],
    },
    {
      actor: 'ada',
      action: 'UpdateInstallation',
      confirmed: true,
      settings: expect.arrayContaining([
        { $typeName: expect.any(String), name: 'capabilities.typing', value: 'false' },
        { $typeName: expect.any(String), name: 'consent.policyVersion', value: 'v1' },
      ]),
    },
  ])
})

it('the record of policy changes contains new installations, connection states, suppressions, bans and revocations', async () => {
  const { workspaces, sessions } = await clients()
  const { workspaceId } = cores
  const { connection } = await workspaces.createConnection({ workspaceId, name: 'Site' })
  const { connectionId } = connection!
  const { installation } = await workspaces.createInstallation({ connectionId, origins: [site] })
  expect(await changesOf(installation!.publicSiteKey)).toMatchObject([{ action: 'CreateInstallation' }])
  await workspaces.setConnectionStatus({ connectionId, status: 2 })
  expect(await changesOf(connectionId)).toMatchObject([
    { action: 'SetConnectionStatus', settings: [{ name: 'status', value: 'CONNECTION_STATUS_DISABLED' }] },
  ])

  const email = `${randomUUID()}@example.com`
  const entries = [{ of: { case: 'email' as const, value: email } }]
  await workspaces.addSuppressions({ entries, reason: 'asked us' })
  const { suppressions } = await workspaces.listSuppressions({ entry: entries[0]! })
  const { suppressionId } = suppressions[0]!
  await workspaces.removeSuppressions({ suppressionIds: [suppressionId] })
  const onList = await changesOf(workspaceId)
  expect(onList).toMatchObject([
    { action: 'RemoveSuppressions', settings: [{ name: 'suppressionIds', value: suppressionId }] },
    { action: 'AddSuppressions', settings: [{ name: 'entries.email', value: '1' }] },
  ])
  expect(onList.flatMap(({ settings }) => settings.map(({ value }) => value))).not.toContain(email)

  const { sessionId } = await cores.newSession()
  await sessions.banVisitor({ sessionId, reason: 'a secret reason' })
  await sessions.unbanVisitor({ sessionId })
  const bans = await changesOf(sessionId)
  expect(bans.map(({ action }) => action)).toEqual(['UnbanVisitor', 'BanVisitor'])
  const revoked = await cores.newSession()
  await sessions.revokeSession({ sessionId: revoked.sessionId })
  expect(await changesOf(revoked.sessionId)).toMatchObject([{ actor: 'ada', action: 'RevokeSession', settings: [] }])
  expect(bans.flatMap(({ settings }) => settings)).toEqual([])
})

it('the record of policy changes omits entries of other workspaces and of rejected calls', async () => {
  const siteKey = await newSiteKey()
  const { workspaces } = await clients()
  expect(await codeOf(workspaces.updateInstallation({ siteKey, appearance: { position: 'top' } }))).not.toBe('ok')
  expect(await changesOf(siteKey)).toEqual([])
  await workspaces.updateInstallation({ siteKey, enabled: true })
  const elsewhere = (await createWorkspace(cores.core, 'Elsewhere')).workspaceId
  const stranger = await clientsOf(cores.core, elsewhere)
  expect((await stranger.workspaces.listPolicyChanges({ target: siteKey })).changes).toEqual([])
  expect(await codeOf(stranger.workspaces.updateInstallation({ siteKey, enabled: false }))).not.toBe('ok')
  expect(await changesOf(siteKey)).toHaveLength(1)
})

it('the record of policy changes has an entry for every stored change, no matter at which write the process dies', async () => {
  await cores.untilOneSurvives(async (mortal) => {
    const siteKey = await newSiteKey()
    const { workspaces } = await clientsOf(mortal, cores.workspaceId)
    const change = { siteKey, capabilities: { typing: false }, idempotencyKey: randomUUID() as string }
    const died = await hasFailed(workspaces.updateInstallation(change))
    const isChanged = (await findInstallation(cores.core, siteKey, undefined)).capabilities.typing === false
    const [entry, ...more] = await changesOf(siteKey)
    expect(more).toEqual([])
    if (isChanged) expect(entry).toBeDefined()
    if (entry?.confirmed) expect(isChanged).toBe(true)
    return died
  })
})

itLong('the record of policy changes keeps its entries without the session when the visitor is erased', async () => {
  const { sessions } = await clients()
  const { sessionId } = await cores.newSession()
  await sessions.banVisitor({ sessionId, reason: 'x' })
  await eraseVisitor(cores.core, await visitorOfSession(cores.core, sessionId, undefined), 'desk')
  await finishErasures(cores)
  expect(await changesOf(sessionId)).toEqual([])
  const { changes } = await (await clients()).workspaces.listPolicyChanges({})
  expect(changes.filter(({ action, target }) => action === 'BanVisitor' && target === '')).toHaveLength(1)
})

it('the record of policy changes contains a deletion once, even if the call is repeated on another core', async () => {
  const { workspaces } = await clients()
  const other = await clients(cores.other)
  const siteKey = await newSiteKey()
  const { connection } = await workspaces.createConnection({ workspaceId: cores.workspaceId, name: 'Site' })
  const { connectionId } = connection!
  for (const { workspaces: caller } of [await clients(), other]) {
    await caller.deleteInstallation({ siteKey })
    await caller.deleteConnection({ connectionId })
  }
  for (const [target, action] of [
    [siteKey, 'DeleteInstallation'],
    [connectionId, 'DeleteConnection'],
  ] as const)
    expect(await changesOf(target)).toMatchObject([{ actor: 'ada', action, confirmed: true }])
})

it('the record of policy changes omits the deletion of an unknown object', async () => {
  const { workspaces } = await clients()
  expect(await codeOf(workspaces.deleteInstallation({ siteKey: 'pk_unknown' }))).not.toBe('ok')
  expect(await changesOf('pk_unknown')).toEqual([])
})

it('the record of policy changes is listed in pages', async () => {
  const { workspaces } = await clients()
  const target = await newSiteKey()
  for (let index = 0; index < 5; index++) await workspaces.updateInstallation({ siteKey: target, defaultLocale: 'de' })
  const ids: string[] = []
  for (let pageToken = ''; ; ) {
    const { changes, nextPageToken } = await workspaces.listPolicyChanges({ target, limit: 2, pageToken })
    ids.push(...changes.map(({ changeId }) => changeId))
    if (nextPageToken === '') break
    pageToken = nextPageToken
  }
  expect(new Set(ids).size).toBe(5)
  expect(ids).toHaveLength(5)
})

it('the name of a website is set, kept, changed and removed; wrong names are refused', async () => {
  const { workspaces } = await clients()
  const { connection } = await workspaces.createConnection({ workspaceId: cores.workspaceId, name: 'Site' })
  const made = { connectionId: connection!.connectionId, origins: [site] }
  const { publicSiteKey: siteKey } = (await workspaces.createInstallation({ ...made, name: 'Shop' })).installation!
  const nameNow = async () =>
    (await workspaces.listInstallations({})).installations.find((each) => each.publicSiteKey === siteKey)!.name
  expect(await nameNow()).toBe('Shop')
  await workspaces.updateInstallation({ siteKey, defaultLocale: 'de' })
  expect(await nameNow()).toBe('Shop')
  const longest = '😀'.repeat(80)
  await workspaces.updateInstallation({ siteKey, name: longest })
  expect(await nameNow()).toBe(longest)
  for (const [name, rule] of [
    [`${longest}x`, 'maxLength'],
    ['two\nlines', 'pattern'],
  ] as const)
    for (const call of [
      () => workspaces.createInstallation({ ...made, name }),
      () => workspaces.updateInstallation({ siteKey, name }),
    ])
      expect(await issuesOf(call())).toEqual([`/name ${rule}`])
  await workspaces.updateInstallation({ siteKey, name: '' })
  expect(await nameNow()).toBe('')
})

import { randomUUID } from 'node:crypto'
import { getOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { testDatabase } from '../../test/support/test-database.ts'
import type { CoreContext } from '../context.ts'
import { startTestCores, type TestCores } from '../test-core-context.ts'
import { servedMethods } from '../test-operator-calls.ts'
import { type Answer, clientsOf, type Scene, type Write, writes } from '../test-operator-writes.ts'

const database = testDatabase()
let cores: TestCores
let here: CoreContext
let there: CoreContext
beforeAll(async () => {
  cores = await startTestCores(database, { count: 2 })
  ;[here, there] = cores.cores as [CoreContext, CoreContext]
})
afterAll(() => cores.stop())

/** After this time another process may take over a dead process's key. */
const takenOverAfterSeconds = 16

const operatorServices = ['WorkspaceService', 'LeadService', 'CommandService']

it('the table lists every write of operators', () => {
  const found = servedMethods().filter(
    ([, method]) =>
      operatorServices.includes(method.parent.name) &&
      !['visitors:act', 'deliveries:work'].includes(getOption(method, scope)) &&
      method.idempotency !== Level.NO_SIDE_EFFECTS,
  )
  expect(Object.keys(writes).toSorted()).toEqual(found.map(([name]) => name).toSorted())
})

const table = Object.entries(writes)
const keyed = table.filter(([, { isKeyed }]) => isKeyed)

async function newScene(write: Write) {
  const scene: Scene = await write.scene(cores)
  const before = await write.effects(cores, scene)
  return { scene, effects: async () => (await write.effects(cores, scene)) - before }
}

/** Calls one core; `undefined` sends no key. */
async function callAt(core: CoreContext, write: Write, scene: Scene, key: string | undefined, input = 'a') {
  return write.call(await clientsOf(core, write.isGlobal ? undefined : cores.workspaceId), scene, key, input)
}

const codeOf = (answer: Promise<Answer>) =>
  answer.then(
    () => 'ok',
    (error: Error) => error.message.replace(/^\[\w+\] /, ''),
  )

describe.each(keyed)('%s', (_name, write) => {
  it('repeated with its key takes effect once and returns the same response on both cores', async () => {
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    const first = await callAt(here, write, scene, key)
    expect(await callAt(here, write, scene, key)).toEqual(first)
    expect(await callAt(there, write, scene, key)).toEqual(first)
    expect(await effects()).toBe(1)
  })

  it('sent concurrently with one key takes effect once', async () => {
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    const codes = await Promise.all([here, there, here].map((core) => codeOf(callAt(core, write, scene, key))))
    expect(codes).toContain('ok')
    expect(codes.filter((code) => code !== 'ok' && code !== 'OperationInProgress')).toEqual([])
    await callAt(there, write, scene, key)
    expect(await effects()).toBe(1)
  })

  it('with a used key and other input is rejected and changes nothing', async () => {
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    await callAt(here, write, scene, key)
    expect(await codeOf(callAt(there, write, scene, key, 'b'))).toBe('IdempotencyConflict')
    expect(await effects()).toBe(1)
  })

  it('takes effect once when repeated after its core died between any two writes', async () => {
    for (let died = true, count = 0; died; count += 1) {
      const { scene, effects } = await newScene(write)
      const key = randomUUID()
      died = (await codeOf(callAt(cores.mortalCore(count), write, scene, key))) !== 'ok'
      if (died) cores.advance(takenOverAfterSeconds)
      const repeated = await callAt(there, write, scene, key)
      expect(await callAt(here, write, scene, key)).toEqual(repeated)
      expect(await effects()).toBe(1)
    }
  }, 60_000)
})

const refusesEmptyKey = keyed.filter(([name]) => !/Attempt|Request/.test(name))
it.each(refusesEmptyKey)('%s rejects an invalid key', async (_name, write) => {
  const { scene, effects } = await newScene(write)
  for (const key of ['', 'a b', 'k'.repeat(129)]) {
    expect(await codeOf(callAt(here, write, scene, key))).toBe('IdempotencyKeyInvalid')
  }
  expect(await effects()).toBe(0)
})

it('CancelCommand, which has no key, takes effect once', async () => {
  const write = writes['CommandService.CancelCommand']!
  const { scene, effects } = await newScene(write)
  const answers = await Promise.all([here, there, here].map((core) => callAt(core, write, scene, undefined)))
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  expect(await effects()).toBe(1)
})

describe('a repeat', () => {
  const repeats: [string, (other: Scene) => Promise<unknown>][] = [
    [
      'WorkspaceService.UpdateInstallation',
      ({ siteKey }) => there.workspaces.updateInstallation(siteKey, { appearance: { title: 'Mine' } }, undefined),
    ],
    [
      'WorkspaceService.SetConnectionStatus',
      ({ connectionId }) => there.workspaces.setConnectionStatus(connectionId, 'enabled', undefined),
    ],
    [
      'LeadService.UpdateSubscription',
      ({ subscriptionId }) =>
        there.leadSubscriptions.update(
          subscriptionId,
          { mappedFields: ['mine'], status: 'enabled' },
          { subject: 'other' },
        ),
    ],
  ]
  it.each(repeats)('of %s does not undo a later change by another operator', async (name, change) => {
    const write = writes[name]!
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    await callAt(here, write, scene, key)
    await change(scene)
    const after = [await effects(), await write.state?.(cores, scene)]
    await callAt(here, write, scene, key)
    expect([await effects(), await write.state?.(cores, scene)]).toEqual(after)
  })

  it.each(repeats)(
    'of %s does not undo it either if the first core died before responding',
    async (name, change) => {
      const write = writes[name]!
      for (let died = true, count = 1; died; count += 1) {
        const { scene, effects } = await newScene(write)
        const key = randomUUID()
        died = (await codeOf(callAt(cores.mortalCore(count), write, scene, key))) !== 'ok'
        if ((await effects()) === 0) continue
        await change(scene)
        const after = await write.state?.(cores, scene)
        if (died) cores.advance(takenOverAfterSeconds)
        await callAt(there, write, scene, key)
        expect(await write.state?.(cores, scene)).toEqual(after)
      }
    },
    60_000,
  )

  it('of a rotation whose secret has expired is rejected', async () => {
    const write = writes['WorkspaceService.RotateIdentitySecret']!
    const { scene } = await newScene(write)
    const key = randomUUID()
    await callAt(here, write, scene, key)
    for (const _ of [1, 2]) await here.workspaces.rotateIdentitySecret(scene.siteKey, undefined, { overlapSeconds: 0 })
    expect(await codeOf(callAt(here, write, scene, key))).toBe('IdempotencyConflict')
  })

  it('of a rotation leaves no secret in the idempotency records', async () => {
    const secrets: string[] = []
    for (const name of ['RotateIdentitySecret', 'CreateInstallation']) {
      const write = writes[`WorkspaceService.${name}`]!
      const { scene } = await newScene(write)
      secrets.push((await callAt(here, write, scene, randomUUID())).secret!)
    }
    for (const name of ['RotateSubscriptionSecret', 'CreateSubscription']) {
      const write = writes[`LeadService.${name}`]!
      const { scene } = await newScene(write)
      secrets.push((await callAt(here, write, scene, randomUUID())).secret!)
    }
    expect(secrets.every((secret) => secret.length > 20)).toBe(true)
    const kept = JSON.stringify(await here.database.collections.idempotency.find().toArray())
    for (const secret of secrets) expect(kept).not.toContain(secret)
  })
})

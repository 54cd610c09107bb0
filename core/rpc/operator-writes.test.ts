import { randomUUID } from 'node:crypto'
import { getOption } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel as Level } from '@bufbuild/protobuf/wkt'
import { describe, expect, it } from 'vitest'
import { scope } from '#proto/access/v1/access_pb.js'
import { itLong, someOf } from '../../test/support/is-long.ts'
import type { RunningCore } from '../context.ts'
import { updateSubscription } from '../deliveries/subscriptions.ts'
import { hasFailed, testCores } from '../test/cores.ts'
import { servedMethods } from '../test/operator-calls.ts'
import { clientsOf } from '../test/operator-clients.ts'
import type { Answer, Scene, Write } from '../test/operator-scenes.ts'
import { writes } from '../test/operator-writes.ts'
import { site } from '../test/visitor-credentials.ts'
import { rotateIdentitySecret, setConnectionStatus, updateInstallation } from '../workspaces/workspaces.ts'

const cores = testCores({ count: 2 })

/** Time after which another process may take over the idempotency key of a dead process. */
const takenOverAfterSeconds = 16

const operatorServices = ['WorkspaceService', 'LeadService', 'HookService', 'CommandService']

// Calls that change the suppression list are not in the table. Each entry is on the list at most
// once, so these calls have the same effect with and without a key. Their own tests cover repeats.
it('the table `writes` lists every operator method that writes', () => {
  const found = servedMethods().filter(
    ([name, method]) =>
      !/Suppressions$|\.(Delete|Restore|Revoke)/.test(name) &&
      operatorServices.includes(method.parent.name) &&
      !['visitors:act', 'deliveries:work', 'cores:announce'].includes(getOption(method, scope)) &&
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

/** Calls the method on the core. Without a key, the request has no idempotency key. */
async function callAt(core: RunningCore, write: Write, scene: Scene, key: string | undefined, input = 'a') {
  return write.call(await clientsOf(core, write.isGlobal ? undefined : cores.workspaceId), scene, key, input)
}

const codeOf = (answer: Promise<Answer>) =>
  answer.then(
    () => 'ok',
    (error: Error) => error.message.replace(/^\[\w+\] /, ''),
  )

describe.each(someOf(keyed, 5))('the operator method %s', (_name, write) => {
  it('takes effect once and returns the same response when repeated with its key on both cores', async () => {
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    const first = await callAt(cores.core, write, scene, key)
    expect(await callAt(cores.core, write, scene, key)).toEqual(first)
    expect(await callAt(cores.other, write, scene, key)).toEqual(first)
    expect(await effects()).toBe(1)
  })

  it('takes effect once when sent concurrently with one key', async () => {
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    const codes = await Promise.all(
      [cores.core, cores.other, cores.core].map((core) => codeOf(callAt(core, write, scene, key))),
    )
    expect(codes).toContain('ok')
    expect(codes.filter((code) => code !== 'ok' && code !== 'OperationInProgress')).toEqual([])
    await callAt(cores.other, write, scene, key)
    expect(await effects()).toBe(1)
  })

  it('is rejected and changes nothing when a used key is sent with different input', async () => {
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    await callAt(cores.core, write, scene, key)
    expect(await codeOf(callAt(cores.other, write, scene, key, 'b'))).toBe('IdempotencyConflict')
    expect(await effects()).toBe(1)
  })

  itLong('takes effect once when repeated after its core died between any two writes', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const { scene, effects } = await newScene(write)
      const key = randomUUID()
      const died = await hasFailed(callAt(mortal, write, scene, key))
      if (died) cores.advance(takenOverAfterSeconds)
      const repeated = await callAt(cores.other, write, scene, key)
      expect(await callAt(cores.core, write, scene, key)).toEqual(repeated)
      expect(await effects()).toBe(1)
      return died
    })
  })
})

const refusesEmptyKey = keyed.filter(([name]) => !/Attempt|Request|TestDelivery/.test(name))
it.each(refusesEmptyKey)('%s rejects an invalid key', async (_name, write) => {
  const { scene, effects } = await newScene(write)
  for (const key of ['', 'a b', 'k'.repeat(129)]) {
    expect(await codeOf(callAt(cores.core, write, scene, key))).toBe('IdempotencyKeyInvalid')
  }
  expect(await effects()).toBe(0)
})

it('CancelCommand, which has no key, takes effect once', async () => {
  const write = writes['CommandService.CancelCommand']!
  const { scene, effects } = await newScene(write)
  const answers = await Promise.all(
    [cores.core, cores.other, cores.core].map((core) => callAt(core, write, scene, undefined)),
  )
  expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
  expect(await effects()).toBe(1)
})

describe('operator writes with an idempotency key', () => {
  const repeats: [string, (other: Scene) => Promise<unknown>][] = [
    [
      'WorkspaceService.UpdateInstallation',
      ({ siteKey }) => updateInstallation(cores.other, siteKey, { appearance: { title: 'Mine' } }, undefined),
    ],
    [
      'WorkspaceService.SetLogo',
      ({ siteKey }) => updateInstallation(cores.other, siteKey, { appearance: { logoUrl: site } }, undefined),
    ],
    [
      'WorkspaceService.SetConnectionStatus',
      ({ connectionId }) => setConnectionStatus(cores.other, connectionId, 'enabled', undefined),
    ],
    [
      'LeadService.UpdateSubscription',
      ({ subscriptionId }) =>
        updateSubscription(
          cores.other,
          subscriptionId,
          { mappedFields: ['mine'], status: 'enabled' },
          { subject: 'other' },
        ),
    ],
  ]
  it.each(repeats)('do not undo a later change by another operator when %s is repeated', async (name, change) => {
    const write = writes[name]!
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    await callAt(cores.core, write, scene, key)
    await change(scene)
    const after = [await effects(), await write.state?.(cores, scene)]
    await callAt(cores.core, write, scene, key)
    expect([await effects(), await write.state?.(cores, scene)]).toEqual(after)
  })

  itLong.each(repeats)(
    'do not undo a later change when %s is repeated after its core died before responding',
    async (name, change) => {
      const write = writes[name]!
      await cores.untilOneSurvives(async (mortal) => {
        const { scene, effects } = await newScene(write)
        const key = randomUUID()
        const died = await hasFailed(callAt(mortal, write, scene, key))
        if ((await effects()) === 0) return died
        await change(scene)
        const after = await write.state?.(cores, scene)
        if (died) cores.advance(takenOverAfterSeconds)
        await callAt(cores.other, write, scene, key)
        expect(await write.state?.(cores, scene)).toEqual(after)
        return died
      })
    },
  )

  it('reject a repeated rotation whose secret has expired', async () => {
    const write = writes['WorkspaceService.RotateIdentitySecret']!
    const { scene } = await newScene(write)
    const key = randomUUID()
    await callAt(cores.core, write, scene, key)
    for (const _ of [1, 2]) await rotateIdentitySecret(cores.core, scene.siteKey, undefined, { overlapSeconds: 0 })
    expect(await codeOf(callAt(cores.core, write, scene, key))).toBe('IdempotencyConflict')
  })

  const creating = ['CreateInstallation', 'RotateIdentitySecret'].map((name) => `WorkspaceService.${name}`)
  creating.push(...['CreateSubscription', 'RotateSubscriptionSecret'].map((name) => `LeadService.${name}`))
  it.each(creating)('return a created secret for ten minutes, and then masked, when %s is repeated', async (name) => {
    const write = writes[name]!
    const { scene, effects } = await newScene(write)
    const key = randomUUID()
    const first = await callAt(cores.core, write, scene, key)
    cores.advance(590)
    expect(await callAt(cores.other, write, scene, key)).toEqual(first)
    cores.advance(20)
    for (const core of cores.cores) {
      const { id, secret } = await callAt(core, write, scene, key)
      expect([id, secret]).toEqual([first.id, expect.stringMatching(/^(whsec_.{4})?••••$/)])
    }
    expect(await effects()).toBe(1)
  })

  it('store no created secret in the idempotency records', async () => {
    const secrets: string[] = []
    for (const name of ['RotateIdentitySecret', 'CreateInstallation']) {
      const write = writes[`WorkspaceService.${name}`]!
      const { scene } = await newScene(write)
      secrets.push((await callAt(cores.core, write, scene, randomUUID())).secret!)
    }
    for (const name of ['RotateSubscriptionSecret', 'CreateSubscription']) {
      const write = writes[`LeadService.${name}`]!
      const { scene } = await newScene(write)
      secrets.push((await callAt(cores.core, write, scene, randomUUID())).secret!)
    }
    expect(secrets.every((secret) => secret.length > 20)).toBe(true)
    const kept = JSON.stringify(await cores.core.database.collections.idempotency.find().toArray())
    for (const secret of secrets) expect(kept).not.toContain(secret)
  })
})

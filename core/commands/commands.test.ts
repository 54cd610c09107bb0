import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { forAllAsync } from '../../test/support/for-all.ts'
import { imageOf } from '../../test/support/images.ts'
import { itLong, runs } from '../../test/support/is-long.ts'
import { testDatabase } from '../../test/support/test-database.ts'
import type { ServiceError } from '../errors.ts'
import type { Session } from '../sessions/model.ts'
import { createTestCommands, lifetime, site } from '../test/commands.ts'
import { openTestDatabase } from '../test/open-test-database.ts'
import type { CommandState } from './model.ts'

const operator = { subject: 'desk' }
const image = imageOf('image/png', 64)
const core = createTestCommands(await openTestDatabase(testDatabase()))

async function navigation({ sessionId }: Session): Promise<string> {
  const { content } = await core.commands.requestNavigation({ sessionId, url: `${site}/a` }, operator)
  return content.commandId
}

async function screenshot({ sessionId }: Session): Promise<string> {
  const { content } = await core.commands.requestScreenshot({ sessionId, purpose: 'Look' }, operator)
  return content.commandId
}

function answer(session: Session, commandId: string, outcome: string, idempotencyKey = core.newKey()) {
  const credentials = core.credentials(session)
  return commandId.startsWith('cmd_')
    ? core.decisions.acknowledgeNavigation({ credentials, commandId, outcome, idempotencyKey })
    : core.decisions.acknowledgeScreenshot({ credentials, requestId: commandId, consent: outcome, idempotencyKey })
}

function upload(session: Session, requestId: string) {
  const header = { requestId, credentials: core.credentials(session), contentType: 'image/png' }
  return core.screenshots.upload({ ...header, idempotencyKey: core.newKey() }, chunksOf(image))
}

async function* chunksOf(bytes: Uint8Array) {
  yield bytes
}

const errorWith = (code: PublicErrorCode) => expect.objectContaining({ code })
const types = async (session: Session) => (await core.eventsOf(session)).map(({ type }) => type)

describe('commands', () => {
  it('a command is `expired` once its time limit has passed, even before the cleanup job stores that state', async () => {
    const session = core.newSession()
    const [first, second] = [await navigation(session), await screenshot(session)]
    core.time.now += lifetime * 1000 - 1
    await answer(session, second, 'granted')
    core.time.now += 1
    for (const swept of [false, true]) {
      if (swept) await core.cleanup.run()
      await expect(answer(session, first, 'accepted')).rejects.toEqual(errorWith('CommandExpired'))
      await expect(core.commands.cancel(first, operator)).rejects.toEqual(errorWith('CommandExpired'))
      const { state, transitions, expiresAt } = await core.commands.find(first)
      expect(state).toBe('expired')
      expect(transitions.at(-1)).toEqual({ state: 'expired', at: expiresAt, by: 'clock' })
      expect(transitions).toHaveLength(2)
    }
    // Consent starts a new time limit for the upload.
    expect((await core.commands.find(second)).state).toBe('granted')
    core.time.now += lifetime * 1000
    await expect(upload(session, second)).rejects.toEqual(errorWith('CommandExpired'))
    await expect(answer(session, second, 'granted')).rejects.toEqual(errorWith('CommandExpired'))
  })

  it('a command that was accepted before its expiry can be completed at any later time', async () => {
    const session = core.newSession()
    const commandId = await navigation(session)
    await answer(session, commandId, 'accepted')
    core.time.now += lifetime * 10_000
    await core.cleanup.run()
    expect((await answer(session, commandId, 'completed')).content.state).toBe('completed')
  })

  it('a command is stored even if the write of its event fails; a repeated request writes the event once', async () => {
    const session = core.newSession()
    const request = { sessionId: session.sessionId, url: `${site}/a`, clientOperationId: 'op' }
    core.breakLog(new Error('killed'))
    await expect(core.commands.requestNavigation(request, operator)).rejects.toThrow('killed')
    expect(await types(session)).toEqual([])
    core.breakLog(undefined)
    const { content, replayed } = await core.commands.requestNavigation(request, operator)
    expect([content.state, replayed]).toEqual(['requested', true])
    await core.commands.requestNavigation(request, operator)
    expect(await types(session)).toEqual(['navigation.requested'])
    expect(await core.commands.list(session.sessionId, undefined)).toHaveLength(1)
  })

  it('the request event precedes the cancellation event, even if the first write of each event failed', async () => {
    const session = core.newSession()
    const request = { sessionId: session.sessionId, clientOperationId: 'op' }
    core.breakLog(new Error('killed'))
    await core.commands.requestScreenshot(request, operator).catch(() => {})
    const [command] = await core.commands.list(session.sessionId, undefined)
    await expect(core.commands.cancel(command!.commandId, operator)).rejects.toThrow('killed')
    core.breakLog(undefined)
    expect((await core.commands.cancel(command!.commandId, operator)).state).toBe('cancelled')
    await core.commands.requestScreenshot(request, operator)
    expect(await types(session)).toEqual(['screenshot.requested', 'screenshot.cancelled'])
  })

  itLong('a command accepts exactly one of several concurrent decisions', async () => {
    for (let round = 0; round < 10; round += 1) {
      const session = core.newSession()
      const commandId = await navigation(session)
      const outcomes = ['accepted', 'declined', 'unsupported', 'declined']
      const settled = await Promise.allSettled([
        ...outcomes.map((outcome) => answer(session, commandId, outcome)),
        core.commands.cancel(commandId, operator),
      ])
      const { state, transitions } = await core.commands.find(commandId)
      expect(transitions).toHaveLength(2)
      for (const [index, { status }] of settled.entries())
        expect(status).toBe((outcomes[index] ?? 'cancelled') === state ? 'fulfilled' : 'rejected')
    }
  })

  it("a navigation accepts only URLs of the session's origin or of an origin that the installation allows, and normalizes them", async () => {
    const { sessionId } = core.newSession()
    const go = (url: string) => core.commands.requestNavigation({ sessionId, url }, operator)
    expect((await go('HTTPS://SHOP.example:443/a/../b')).content.url).toBe(`${site}/b`)
    expect((await go('https://de.help.example/x')).content.url).toBe('https://de.help.example/x')
    for (const url of [
      'http://shop.example/',
      'https://help.example.evil/',
      'https://shop.example.evil/',
      'blob:https://shop.example/1',
    ])
      await expect(go(url)).rejects.toMatchObject({ issues: [{ path: '/url', rule: 'origin' }] })
    for (const url of ['https://shop.example@evil.example/', 'https://shop.example/\t', `${site}/${'a'.repeat(2048)}`])
      await expect(go(url)).rejects.toEqual(errorWith('ValidationFailed'))
  })

  it('a command records its requester, its purpose and the time of each state change', async () => {
    const session = core.newSession()
    const commandId = await screenshot(session)
    const at = core.time.now
    core.time.now += 1000
    await answer(session, commandId, 'denied')
    expect(await core.commands.find(commandId)).toMatchObject({
      requestedBy: 'desk',
      purpose: 'Look',
      sessionId: session.sessionId,
      transitions: [
        { state: 'requested', at: new Date(at), by: 'desk' },
        { state: 'denied', at: new Date(at + 1000), by: 'visitor' },
      ],
    })
    await expect(core.commands.find(commandId, 'ws_2')).rejects.toEqual(errorWith('CommandNotFound'))
  })
})

/** State transitions that the API contract allows. */
const allowed = new Set([
  'cmd requested accepted',
  'cmd requested declined',
  'cmd requested unsupported',
  'cmd requested cancelled',
  'cmd accepted completed',
  'cmd accepted failed',
  'scr requested granted',
  'scr requested denied',
  'scr requested unsupported',
  'scr requested cancelled',
  'scr granted uploaded',
])

interface Model {
  kind: 'cmd' | 'scr'
  state: CommandState
  expiresAt: number
  steps: CommandState[]
}

/** Returns the next state, or the error code if the API contract forbids the transition. */
function expected(model: Model, to: CommandState): CommandState | PublicErrorCode {
  const expires = model.state === 'requested' || model.state === 'granted'
  if (expires && core.time.now >= model.expiresAt) model.state = 'expired'
  if (to === 'uploaded') {
    if (model.state === 'expired') return 'CommandExpired'
    if (model.state === 'uploaded') return 'CommandAlreadyResolved'
    if (model.state !== 'granted') return 'ConsentRequired'
  }
  if (model.state === to) return to
  if (model.state === 'expired') return 'CommandExpired'
  if (!allowed.has(`${model.kind} ${model.state} ${to}`)) return 'CommandAlreadyResolved'
  model.state = to
  model.steps.push(to)
  if (to === 'granted') model.expiresAt = core.time.now + lifetime * 1000
  return to
}

const navigationSteps = ['accepted', 'declined', 'completed', 'failed', 'unsupported', 'cancelled'] as const
const screenshotSteps = ['granted', 'denied', 'unsupported', 'uploaded', 'cancelled'] as const
const step = (steps: readonly CommandState[]) =>
  fc.record({ to: fc.constantFrom(...steps), wait: fc.constantFrom(0, 0, 0, 1, 60_000, 120_000), sweep: fc.boolean() })

describe('commands that receive random calls of the operator and the visitor', () => {
  it.each([
    ['cmd', navigationSteps],
    ['scr', screenshotSteps],
  ] as const)(
    'have the state and the transitions that the API contract describes (prefix of the command id: %s)',
    async (kind, steps) => {
      await forAllAsync([fc.array(step(steps), { minLength: 1, maxLength: 8 })], runs(120), async (calls) => {
        const session = core.newSession()
        const commandId = await (kind === 'cmd' ? navigation(session) : screenshot(session))
        const model: Model = {
          kind,
          state: 'requested',
          expiresAt: core.time.now + lifetime * 1000,
          steps: ['requested'],
        }
        for (const { to, wait, sweep } of calls) {
          core.time.now += wait
          if (sweep) await core.cleanup.run()
          const call =
            to === 'cancelled'
              ? core.commands.cancel(commandId, operator)
              : to === 'uploaded'
                ? upload(session, commandId).then(({ content }) => content)
                : answer(session, commandId, to).then(({ content }) => content)
          const outcome = await call.then(
            ({ state }) => state,
            (error: ServiceError) => error.code,
          )
          expect(outcome).toBe(expected(model, to))
        }
        const { state, transitions } = await core.commands.find(commandId)
        expected(model, state)
        expect(state).toBe(model.state)
        expect(transitions.map((each) => each.state).filter((each) => each !== 'expired')).toEqual(model.steps)
        const written = await types(session)
        expect(written.length).toBe(state === 'cancelled' ? 2 : 1)
      })
    },
  )
})

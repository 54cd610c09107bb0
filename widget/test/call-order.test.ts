import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { storageFor } from '../../browser/storage.ts'
import { runs } from '../../test/support/is-long.ts'
import { createManualClock } from '../../test/support/manual-clock.ts'
import { WidgetError } from '../src/vocabulary/errors.ts'
import { assertionOf } from './assertion-of.ts'
import { createClientHarness } from './client-harness.ts'
import { startScenarioServer } from './scenario-server.ts'

/** What the model knows: whether the client runs, and what the tab has stored. */
interface Model {
  client: 'idle' | 'live' | 'ended'
  stored: 'nothing' | 'session' | 'end'
  isVerified: boolean
  /** Number of sessions that `POST /sessions` must have created. */
  created: number
}

type Outcome = string | undefined

/** Calls with the outcome that the model expects: an error code, or undefined for success. */
const calls = {
  start(model: Model): Outcome {
    if (model.client !== 'idle') return undefined
    if (model.stored === 'end') model.client = 'ended'
    else begin(model, model.stored === 'nothing')
    return undefined
  },
  stop(model: Model): Outcome {
    model.client = 'idle'
    return undefined
  },
  reload: (model: Model): Outcome => calls.stop(model),
  startNew(model: Model): Outcome {
    if (model.client === 'ended') begin(model, true)
    return undefined
  },
  revoke(model: Model): Outcome {
    if (model.client === 'live') Object.assign(model, { client: 'ended', stored: 'end' })
    return undefined
  },
  sendMessage: (model: Model): Outcome =>
    ({ idle: 'not_started', live: undefined, ended: 'session_ended' })[model.client],
  identify(model: Model): Outcome {
    if (model.client === 'live') model.isVerified = true
    return calls.sendMessage(model)
  },
  clearIdentity(model: Model): Outcome {
    if (model.client === 'idle') {
      if (model.stored !== 'nothing') model.stored = 'nothing'
    } else {
      // The service answers the logout of a verified visitor with a session.
      begin(model, model.stored !== 'session' || !model.isVerified)
      model.isVerified = false
    }
    return undefined
  },
  resetVisitor: (model: Model): Outcome => calls.clearIdentity(model),
  clearDraft: (): Outcome => undefined,
  clearHistory: (): Outcome => undefined,
  retryMessage: (): Outcome => undefined,
  markRead: (): Outcome => undefined,
  setDraft: (): Outcome => undefined,
  loadOlder: (): Outcome => undefined,
  startTyping: (): Outcome => undefined,
  setChatShown: (): Outcome => undefined,
  updatePageContext: (): Outcome => undefined,
  dismissRequest: (): Outcome => undefined,
}

function begin(model: Model, isNew: boolean) {
  if (isNew) {
    model.created += 1
    model.isVerified = false
  }
  Object.assign(model, { client: 'live', stored: 'session' })
}

type Call = keyof typeof calls

async function run(sequence: readonly Call[], isAwaited: boolean) {
  const clock = createManualClock()
  const server = await startScenarioServer({ now: clock.now })
  const storage = storageFor('memory')
  const load = () =>
    createClientHarness(server, 'pk_friendly', {
      clock,
      storage,
      options: { identityProvider: async (wanted) => wanted && assertionOf('ada') },
    })
  let harness = load()
  const model: Model = { client: 'idle', stored: 'nothing', isVerified: false, created: 0 }
  const settled = async () => {
    for (let turn = 0; turn < 4; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const actions: Record<Call, () => unknown> = {
    start: () => harness.client.start(),
    stop: () => harness.client.stop(),
    reload() {
      harness.client.stop()
      harness = load()
    },
    startNew: () => harness.client.startNew(),
    async revoke() {
      const { client } = harness
      if (!client.session()) return
      server.endSessions('pk_friendly', 'session.revoked', { status: 403, code: 'SessionRevoked' })
      client.markRead()
      await client.loadOlder().catch(() => {})
      for (let turn = 0; turn < 500 && !client.ended(); turn += 1) {
        clock.advance(500)
        await settled()
      }
    },
    sendMessage: () => harness.client.sendMessage('Hello'),
    identify: () => harness.client.identify({ externalSubject: 'ada' }),
    clearIdentity: () => harness.client.clearIdentity(),
    resetVisitor: () => harness.client.resetVisitor(),
    clearDraft: () => harness.client.resetVisitor({ clearDraft: true }),
    clearHistory: () => harness.client.resetVisitor({ clearHistory: true }),
    retryMessage: () => harness.client.retryMessage('unknown', { failureVersion: 1 }),
    markRead: () => harness.client.markRead(),
    setDraft: () => harness.client.setDraft('Draft'),
    loadOlder: () => harness.client.loadOlder(),
    startTyping: () => harness.client.startTyping(),
    setChatShown: () => harness.client.setChatShown(true),
    updatePageContext: () => harness.client.updatePageContext({ url: 'http://shop.test/' }),
    dismissRequest: () => harness.client.dismissRequest('unknown'),
  }
  const codeOf = (error: unknown) => {
    expect(error).toBeInstanceOf(WidgetError)
    return (error as WidgetError).code
  }
  const outcomes: Promise<Outcome>[] = []
  try {
    for (const call of sequence) {
      const outcome = (async () => void (await actions[call]()))().then(() => undefined, codeOf)
      outcomes.push(outcome)
      if (!isAwaited) continue
      expect([call, await outcome]).toEqual([call, calls[call](model)])
      await settled()
      const { client } = harness
      const state = client.ended() ? 'ended' : client.connection() === 'idle' ? 'idle' : 'live'
      expect([call, state]).toEqual([call, model.client])
      expect([call, server.seen('POST /sessions').length]).toEqual([call, model.created])
      if (model.client !== 'live') expect(client.session()).toBeUndefined()
    }
    await Promise.all(outcomes)
    // After all calls, a host can always stop and begin anew.
    harness.client.stop()
    await harness.client.resetVisitor()
    await harness.client.start()
    expect(harness.client.session()?.identity.state).toBe('anonymous')
    expect([harness.bodies(), harness.client.draft()]).toEqual([[], ''])
  } finally {
    harness.client.stop()
    await server.close()
  }
}

const sequences = fc.array(fc.constantFrom(...(Object.keys(calls) as Call[])), { minLength: 1, maxLength: 12 })

describe('late and early calls', () => {
  it('C7.1 C7.4 each sequence of calls has the outcomes of the model, and only a host starts a new session', async () => {
    await fc.assert(
      fc.asyncProperty(sequences, (sequence) => run(sequence, true)),
      runs(200, 20),
    )
  })

  it('calls that do not wait for each other reject only with errors of the package, and a reset still works', async () => {
    const quick = sequences.map((sequence) => sequence.filter((call) => call !== 'revoke'))
    await fc.assert(
      fc.asyncProperty(quick, (sequence) => run(sequence, false)),
      runs(200, 20),
    )
  })
})

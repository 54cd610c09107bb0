import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { setTypingOfVisitor } from '../conversations/typing.ts'
import type { SessionContent } from '../sessions/model.ts'
import { codeOf, hasFailed, newSubject, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { credentialsOf } from '../test/visitor-credentials.ts'
import { revokeSession } from '../visitors/sessions.ts'
import { authorizeReport, notePanelUse } from './observations.ts'

const cores = testCores({ count: 2 })

const closePanel = (session: SessionContent, { core = cores.core, key = randomUUID() as string } = {}) =>
  cores.close(session, { core, key, scope: 'panel' })

async function shownBy(core: typeof cores.core, { sessionId }: SessionContent) {
  const { sessions } = await clientsOf(core, cores.workspaceId)
  return (await sessions.getSession({ sessionId })).session?.panelClosedAt
}

const uses = {
  'a message': (session: SessionContent) => cores.send(session, 'Hello', { core: cores.other }),
  typing: (session: SessionContent) => setTypingOfVisitor(cores.other, credentialsOf(session), 'started'),
  'a report that the chat is shown': async (session: SessionContent) => {
    const visitor = await authorizeReport(cores.other, credentialsOf(session), 'presence')
    notePanelUse(cores.other, visitor.session, 'report')
  },
}

describe('a closed panel', () => {
  it('is shown to operators with its time by every core, and the session goes on', async () => {
    const session = await cores.newSession()
    expect(await shownBy(cores.core, session)).toBeUndefined()
    expect(await closePanel(session)).toEqual({
      content: { sessionId: session.sessionId, state: 'active' },
      replayed: false,
    })
    for (const core of cores.cores)
      expect(Number((await shownBy(core, session))?.seconds)).toBeCloseTo(cores.now() / 1000, -1)
    expect(await cores.history(session)).toEqual([])
  })

  it.each(Object.entries(uses))('is open again after %s at another core', async (_, use) => {
    const session = await cores.newSession()
    await closePanel(session)
    cores.advance(2)
    await until('the panel is open', async () => {
      await use(session)
      return (await shownBy(cores.core, session)) === undefined
    })
  })

  it('stays closed after a report that was under way, after a repeat of its close, and after a stop of typing', async () => {
    const session = await cores.newSession()
    const key = randomUUID()
    await closePanel(session, { key })
    await uses['a report that the chat is shown'](session)
    await setTypingOfVisitor(cores.core, credentialsOf(session), 'stopped')
    const closedAt = await shownBy(cores.core, session)
    expect((await closePanel(session, { core: cores.other, key })).replayed).toBe(true)
    expect(await shownBy(cores.other, session)).toEqual(closedAt)
    expect(closedAt).toBeDefined()
  })

  it('stays closed for the session that an identification begins', async () => {
    const session = await cores.newSession()
    await closePanel(session)
    const identified = await cores.identify(session, cores.sign({ sub: newSubject() }))
    expect(await shownBy(cores.core, identified)).toBeDefined()
    expect(await shownBy(cores.core, await cores.clear(identified))).toBeUndefined()
  })

  itLong(
    'is kept after a repeat, no matter at which write the first core died, and refused for an ended session',
    async () => {
      await cores.untilOneSurvives(async (mortal) => {
        const session = await cores.newSession()
        const key = randomUUID()
        const died = await hasFailed(closePanel(session, { core: mortal, key }))
        await until('the repeat is accepted', async () => (await codeOf(closePanel(session, { key }))) === 'ok')
        expect(await shownBy(cores.core, session)).toBeDefined()
        return died
      })
      const ended = await cores.newSession()
      await revokeSession(cores.core, ended.sessionId)
      expect(await codeOf(closePanel(ended))).toBe('SessionRevoked')
    },
  )
})

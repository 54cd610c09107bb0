import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { PublicErrorCode } from '../../contract/errors.ts'
import { itLong, someOf } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { findSession } from '../bans/bans.ts'
import { acknowledgeNavigation, findCommand, listCommands, requestNavigation } from '../commands/commands.ts'
import { closeConversation } from '../conversations/assignments.ts'
import { summarizeConversations } from '../conversations/conversation-access.ts'
import { inboxOf } from '../conversations/inbox.ts'
import { sendAsAgent } from '../conversations/messages.ts'
import { findConversations } from '../log/conversation-store.ts'
import { codeOf, hasFailed, newSubject, type TestCores, testCores } from '../test/cores.ts'
import { credentialsOf, site } from '../test/visitor-credentials.ts'
import { clearIdentity, identifyVisitor } from './identification.ts'

const cores = testCores({ count: 2 })

describe('the identification of an anonymous session', () => {
  it('closes the session on every core and returns a new session with a new grant and renewal token', async () => {
    const session = await cores.newSession()
    const sub = newSubject()
    const streams = [await cores.openStream(session, cores.core), await cores.openStream(session, cores.other)]
    const assertion = cores.sign({ sub, name: 'Ada', ctx: { plan: 'pro', seats: 3 } })
    const key = randomUUID()
    const identified = await cores.identify(session, assertion, { key })
    expect(identified).toMatchObject({ identityState: 'verified', displayName: 'Ada', continuityState: 'continued' })
    expect(identified.conversationId).toBe(session.conversationId)
    for (const field of ['sessionId', 'accessGrant', 'renewalToken'] as const)
      expect(identified[field]).not.toBe(session[field])
    for (const stream of streams) {
      await until('the end of the stream', () => stream.ended)
      expect(stream.types).toEqual(['session.identified', 'session.closed'])
    }
    for (const core of cores.cores) {
      expect(await codeOf(cores.send(session, 'late', { core }))).toBe('SessionClosed')
      expect(await codeOf(cores.history(session, core))).toBe('SessionClosed')
      expect(await codeOf(cores.renew(session, { core }))).toBe('SessionClosed')
      expect(await codeOf(cores.identify(session, cores.sign({ sub }), { core }))).toBe('SessionClosed')
      expect(await cores.identify(session, assertion, { core, key })).toEqual(identified)
    }
    expect((await findSession(cores.core, identified.sessionId)).identity).toMatchObject({
      externalSubject: sub,
      displayName: 'Ada',
      context: [
        ['plan', 'pro'],
        ['seats', 3],
      ],
    })
  })

  it('sends no event to another session of the same verified visitor', async () => {
    const sub = newSubject()
    const one = await cores.newVerified(sub)
    const stream = await cores.openStream(one)
    const other = await cores.newVerified(sub)
    await cores.send(other, 'hello')
    await until('the message', () => stream.types.length > 0)
    expect(stream.types).toEqual(['message.accepted'])
  })

  it.each(someOf(['visitor', 'agent'] as const, 1))(
    'makes the anonymous conversation the verified visitor’s conversation if the %s has written in it',
    async (author) => {
      const sub = newSubject()
      const before = await cores.newVerified(sub)
      await cores.send(before, 'last week')
      const session = await cores.newSession()
      const { conversationId } = session
      if (author === 'visitor') await cores.send(session, 'hello')
      else await sendAsAgent(cores.core, { conversationId, clientOperationId: randomUUID(), body: 'hello' })
      const identified = await cores.identify(session, cores.sign({ sub }))
      expect(identified).toMatchObject({ conversationId, continuityState: 'continued' })
      expect(await cores.history(identified)).toEqual(['hello'])
      const next = await cores.newVerified(sub)
      expect(next.conversationId).toBe(conversationId)
      // Another identification of the earlier session leaves that session's conversation unchanged.
      // It must also not change the conversation that the visitor's next session continues.
      expect((await cores.identify(before, cores.sign({ sub }))).conversationId).toBe(before.conversationId)
      const later = await cores.newVerified(sub)
      expect(later.conversationId).toBe(conversationId)
    },
  )

  it('keeps the anonymous conversation if the verified visitor’s conversation is closed', async () => {
    const sub = newSubject()
    const before = await cores.newVerified(sub)
    await cores.send(before, 'solved')
    await closeConversation(cores.core, before.conversationId, undefined)
    const session = await cores.newSession()
    const next = await cores.identify(session, cores.sign({ sub }))
    expect(next.conversationId).toBe(session.conversationId)
    const later = await cores.newVerified(sub)
    expect(later.conversationId).toBe(session.conversationId)
  })

  itLong('leaves one conversation when many devices identify the same visitor at once', async () => {
    for (let round = 0; round < 5; round += 1) {
      const sub = newSubject()
      const sessions = await Promise.all(Array.from({ length: 6 }, () => cores.newSession()))
      const identified = await Promise.all(
        sessions.map((session, index) =>
          cores.identify(session, cores.sign({ sub }), { core: cores.cores[index % 2]! }),
        ),
      )
      const [one] = identified
      await cores.send(one!, 'to all')
      for (const content of identified) expect(await cores.history(content)).toEqual(['to all'])
    }
  })

  it('shows operators the new session’s visitor with the conversation', async () => {
    const session = await cores.newSession()
    await cores.send(session, 'hello')
    const identified = await cores.identify(session, cores.sign({ sub: newSubject(), name: 'Ada' }))
    const { conversationId } = session
    await sendAsAgent(cores.core, { conversationId, clientOperationId: randomUUID(), body: 'yes?' })
    await inboxOf(cores.core).noted()
    const [conversation] = await findConversations(cores.core, [conversationId])
    expect(conversation?.lastSessionId).toBe(identified.sessionId)
    const [summary] = await summarizeConversations(cores.core, [conversation!])
    expect(summary?.visitor).toMatchObject({ identityState: 'verified', displayName: 'Ada' })
  })
})

describe('a message sent during the identification of its session', () => {
  itLong(
    'is either rejected or in the new session’s history, and a repeat on another core adds no message',
    async () => {
      for (let round = 0; round < 12; round += 1) {
        const sub = newSubject()
        const first = await cores.newVerified(sub)
        await cores.send(first, 'before')
        const session = await cores.newSession(cores.other)
        const key = randomUUID()
        const send = (core: TestCores['core']) =>
          cores.send(session, 'in flight', { core, key }).then(
            ({ event }) => event,
            (error: { code: PublicErrorCode }) => expect(error.code).toBe('SessionClosed'),
          )
        const [identified, ...sent] = await Promise.all([
          cores.identify(session, cores.sign({ sub })),
          ...cores.cores.map(send),
          ...cores.cores.map(send),
        ])
        const events = sent.filter((event) => event !== undefined)
        const repeat = (await cores.send(identified, 'in flight', { key })).event
        for (const event of events) expect(event).toEqual(repeat)
        expect(repeat.conversationId).toBe(identified.conversationId)
        const seen = await cores.history(identified)
        expect(seen.filter((body) => body === 'in flight')).toHaveLength(1)
      }
    },
  )
})

describe('a pending command', () => {
  it('expires when an identification closes its session, and the new session cannot answer it', async () => {
    const session = await cores.newSession()
    const { sessionId } = session
    await cores.send(session, 'hello')
    const { content } = await requestNavigation(cores.core, { sessionId, url: `${site}/a` }, { subject: 'desk' })
    const { commandId } = content
    const identified = await cores.identify(session, cores.sign({ sub: newSubject() }))

    expect(await findCommand(cores.core, commandId)).toMatchObject({ state: 'expired' })
    expect(await listCommands(cores.other, sessionId, undefined)).toMatchObject([{ commandId, state: 'expired' }])
    const acknowledgement = { commandId, outcome: 'accepted', idempotencyKey: randomUUID() }
    const answered = acknowledgeNavigation(cores.core, {
      ...acknowledgement,
      credentials: credentialsOf(identified),
    })
    expect(await codeOf(answered)).toBe('CommandNotFound')
    const stream = await cores.openStream(identified)
    await until('the replay', () => stream.isLive())
    expect(stream.types).toEqual(['message.accepted'])
  })
})

describe('another identification of the same verified visitor', () => {
  it('returns a new grant for the same session and replaces the identity data', async () => {
    const sub = newSubject()
    const session = await cores.identify(
      await cores.newSession(),
      cores.sign({ sub, name: 'Ada', ctx: { plan: 'free', trial: true } }),
    )
    cores.advance(60)
    const again = await cores.identify(session, cores.sign({ sub, name: 'Ada L.', ctx: { plan: 'pro' } }))
    expect(again).toMatchObject({
      sessionId: session.sessionId,
      conversationId: session.conversationId,
      renewalToken: '',
      displayName: 'Ada L.',
      continuityState: 'continued',
    })
    expect(again.expiresAt.getTime()).toBeGreaterThanOrEqual(session.expiresAt.getTime() + 59_000)
    const { identity } = await findSession(cores.core, session.sessionId)
    expect(identity).toMatchObject({ displayName: 'Ada L.', context: [['plan', 'pro']] })
  })
})

describe('the renewal token of a session that goes on', () => {
  const kept = {
    'an identification of the same visitor': async () => {
      const sub = newSubject()
      return {
        session: await cores.newVerified(sub),
        inputOf: () => ({ assertion: cores.sign({ sub }) }),
        call: identifyVisitor,
      }
    },
    'a logout of an anonymous visitor': async () => {
      return { session: await cores.newSession(), inputOf: () => ({ assertion: '' }), call: clearIdentity }
    },
  }

  it.each(someOf(Object.entries(kept), 1))('is returned by %s only to a caller who has it', async (_, start) => {
    const { session, inputOf, call } = await start()
    const input = () => ({ ...inputOf(), credentials: credentialsOf(session), idempotencyKey: randomUUID() })
    const given = async (renewalToken?: string, request = input()) => {
      const { content } = await call(cores.core, { ...request, renewalToken })
      expect(content.sessionId).toBe(session.sessionId)
      return content.renewalToken
    }
    const first = session.renewalToken
    for (const wrong of [undefined, '', 'k1.x', (await cores.newSession()).renewalToken, session.accessGrant])
      expect(await given(wrong)).toBe('')
    expect(await given(first)).toBe(first)
    const { renewalToken } = await cores.renew(session)
    expect(await given(first)).toBe('')
    expect(await given(renewalToken)).toBe(renewalToken)
    const repeated = input()
    expect(await given(renewalToken, repeated)).toBe(renewalToken)
    expect(await given(undefined, repeated)).toBe('')
  })
})

describe('the closing of a verified session', () => {
  it('makes the visitor’s next identification begin a new conversation', async () => {
    const sub = newSubject()
    const one = await cores.newVerified(sub)
    await cores.send(one, 'hello')
    await cores.close(one)
    const next = await cores.newVerified(sub, cores.other)
    expect(next.conversationId).not.toBe(one.conversationId)
    expect(await cores.history(next)).toEqual([])
    const later = await cores.newVerified(sub)
    expect(later.conversationId).toBe(next.conversationId)
  })

  itLong(
    'returns the same result to a repeat with the ended grant, no matter at which write the first process died',
    async () => {
      await cores.untilOneSurvives(async (core) => {
        const sub = newSubject()
        const session = await cores.newVerified(sub)
        await cores.send(session, 'hello')
        const key = randomUUID()
        const died = await hasFailed(cores.close(session, { core, key }))
        cores.advance(16)
        const content = { sessionId: session.sessionId, state: 'closed' }
        expect((await cores.close(session, { key })).content).toEqual(content)
        expect(await cores.close(session, { key, core: cores.other })).toEqual({ content, replayed: true })
        expect(await codeOf(cores.close(session, { key, scope: 'panel' }))).toBe('IdempotencyConflict')
        expect(await codeOf(cores.close(session))).toBe('SessionClosed')
        const next = await cores.newVerified(sub)
        expect(next.conversationId).not.toBe(session.conversationId)
        return died
      })
    },
  )

  it('is rejected for a session that another operation closed', async () => {
    const session = await cores.newSession()
    await cores.identify(session, cores.sign({ sub: newSubject() }))
    expect(await codeOf(cores.close(session))).toBe('SessionClosed')
    expect(await codeOf(cores.close(session, { scope: 'panel' }))).toBe('SessionClosed')
  })
})

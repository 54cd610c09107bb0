import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { itLong, someOf } from '../../test/support/is-long.ts'
import type { RunningCore } from '../context.ts'
import { clearIdentity, identifyVisitor } from '../identity/identification.ts'
import { eraseVisitor } from '../privacy/erasures.ts'
import { exportVisitor } from '../privacy/visitor-data.ts'
import type { SessionContent } from '../sessions/model.ts'
import { codeOf, hasFailed, newSubject, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { credentialsOf, site } from '../test/visitor-credentials.ts'
import { finishErasures, visitorOf } from '../test/visitor-marks.ts'
import { createSession, renewSession } from '../visitors/sessions.ts'
import { banSession, unbanSession } from './bans.ts'

const cores = testCores({ count: 2 })
const hour = 3600

let addresses = 0
/** An address that no other test uses. */
const newAddress = () => {
  addresses += 1
  return `93.184.216.${addresses}`
}

async function begin(clientAddress: string | undefined, { browser = randomUUID() as string, core = cores.core } = {}) {
  const request = { publicSiteKey: cores.publicSiteKey, origin: site, clientInstanceId: browser, clientAddress }
  return (await createSession(core, { ...request, idempotencyKey: randomUUID() })).content
}

const ban = ({ sessionId }: SessionContent, seconds: number | undefined = hour, core = cores.core) =>
  banSession(core, sessionId, 'rude', undefined, seconds)

const unban = ({ sessionId }: SessionContent) => unbanSession(cores.core, sessionId)

const renew = (session: SessionContent, clientAddress?: string, core = cores.core) =>
  renewSession(core, {
    credentials: credentialsOf(session),
    sessionId: session.sessionId,
    renewalToken: session.renewalToken,
    clientAddress,
    idempotencyKey: randomUUID(),
  })

describe('a ban that includes the network address', () => {
  it('refuses new sessions of any browser at the address on every core, until it is lifted', async () => {
    const address = newAddress()
    const session = await begin(address)
    await ban(session)
    for (const core of cores.cores) expect(await codeOf(begin(address, { core }))).toBe('VisitorBanned')
    expect(await codeOf(begin(newAddress()))).toBe('ok')
    expect(await codeOf(begin(undefined))).toBe('ok')
    await unban(session)
    expect(await codeOf(begin(address, { core: cores.other }))).toBe('ok')
  })

  it('ends for the address after its duration, while the browser stays banned', async () => {
    const address = newAddress()
    const browser = randomUUID()
    await ban(await begin(address, { browser }))
    cores.advance(hour + 1)
    expect(await codeOf(begin(address))).toBe('ok')
    expect(await codeOf(begin(address, { browser }))).toBe('VisitorBanned')
  })

  it.each([
    ['the same /64 of IPv6', '2001:db8:1:2::1', '2001:db8:1:2:ffff::9', 'VisitorBanned'],
    ['an IPv4 address written as IPv6', '93.184.217.1', '::ffff:93.184.217.1', 'VisitorBanned'],
    ['another /64 of IPv6', '2001:db8:1:3::1', '2001:db8:1:4::1', 'ok'],
  ])('for %s: after a ban of %s, a new session from %s gets %s', async (_, banned, other, expected) => {
    const session = await begin(banned)
    await ban(session)
    expect(await codeOf(begin(other))).toBe(expected)
    await unban(session)
  })

  it('bans the address that the session had at its last renewal', async () => {
    const [before, after] = [newAddress(), newAddress()]
    const session = await begin(before)
    await renew(session, after)
    await ban(session)
    expect(await codeOf(begin(before))).toBe('ok')
    expect(await codeOf(begin(after))).toBe('VisitorBanned')
  })

  it('ends other sessions at the address when they are renewed', async () => {
    const address = newAddress()
    const [session, other, elsewhere] = [await begin(address), await begin(address), await begin(newAddress())]
    await ban(session)
    expect(await codeOf(cores.send(other, 'still here'))).toBe('ok')
    expect(await codeOf(renew(other, address, cores.other))).toBe('VisitorBanned')
    expect(await codeOf(cores.send(other, 'no longer', { core: cores.other }))).toBe('VisitorBanned')
    expect(await codeOf(renew(elsewhere, address))).toBe('VisitorBanned')
  })

  it.each(
    someOf(
      [
        [
          'a first identification',
          (session: SessionContent, clientAddress: string, core: RunningCore) => {
            const credentials = credentialsOf(session)
            const assertion = cores.sign({ sub: newSubject() })
            return identifyVisitor(core, { credentials, assertion, clientAddress, idempotencyKey: randomUUID() })
          },
        ],
        [
          'a logout',
          async (session: SessionContent, clientAddress: string, core: RunningCore) => {
            const verified = await cores.identify(session, cores.sign({ sub: newSubject() }))
            const credentials = credentialsOf(verified)
            return clearIdentity(core, { credentials, clientAddress, idempotencyKey: randomUUID() })
          },
        ],
      ],
      1,
    ),
  )('refuses %s from the address, which would give a new session', async (_, change) => {
    const address = newAddress()
    const [session, other, elsewhere] = [await begin(address), await begin(address), await begin(newAddress())]
    await ban(session)
    expect(await codeOf(change(other, address, cores.other))).toBe('VisitorBanned')
    expect(await codeOf(change(elsewhere, newAddress(), cores.other))).toBe('ok')
  })

  it('bans the address that the session had at its last identification', async () => {
    const [before, after] = [newAddress(), newAddress()]
    const request = { assertion: cores.sign({ sub: newSubject() }), clientAddress: after, idempotencyKey: 'i' }
    const credentials = credentialsOf(await begin(before))
    await ban((await identifyVisitor(cores.core, { ...request, credentials })).content)
    expect(await codeOf(begin(before))).toBe('ok')
    expect(await codeOf(begin(after))).toBe('VisitorBanned')
  })

  itLong(
    'affects the address and the browser after a repeat, no matter at which write the first process died',
    async () => {
      await cores.untilOneSurvives(async (mortal) => {
        const address = newAddress()
        const browser = randomUUID()
        const session = await begin(address, { browser })
        const died = await hasFailed(ban(session, hour, mortal))
        await ban(session)
        for (const core of cores.cores) {
          expect(await codeOf(begin(address, { core }))).toBe('VisitorBanned')
          expect(await codeOf(begin(newAddress(), { browser, core }))).toBe('VisitorBanned')
          await expect.poll(() => codeOf(cores.send(session, 'x', { core }))).toBe('VisitorBanned')
        }
        return died
      })
    },
  )

  it('affects a shared address until both of its visitors are unbanned', async () => {
    const address = newAddress()
    const [one, two] = [await begin(address), await begin(address)]
    await ban(one)
    await ban(two)
    await unban(one)
    expect(await codeOf(begin(address))).toBe('VisitorBanned')
    await unban(two)
    expect(await codeOf(begin(address))).toBe('ok')
  })

  it('is lifted for a verified visitor when any session of that visitor is unbanned', async () => {
    const address = newAddress()
    const sub = newSubject()
    const verified = await cores.identify(await begin(address), cores.sign({ sub }))
    const second = await cores.identify(await begin(newAddress()), cores.sign({ sub }))
    await ban(verified)
    expect(await codeOf(begin(address))).toBe('VisitorBanned')
    expect(await codeOf(cores.identify(await begin(newAddress()), cores.sign({ sub })))).toBe('VisitorBanned')
    await unban(second)
    expect(await codeOf(begin(address))).toBe('ok')
  })

  itLong('is shown to operators with its end, is exported, and outlasts the visitor’s erasure', async () => {
    const address = newAddress()
    const session = await begin(address)
    const { sessions } = await clientsOf(cores.core, cores.workspaceId)
    const { sessionId } = session
    expect((await sessions.getSession({ sessionId })).session).toMatchObject({ addressKnown: true })
    const banned = (await sessions.banVisitor({ sessionId, addressBanSeconds: hour })).session
    expect(Number(banned?.addressBannedUntil?.seconds)).toBeCloseTo(cores.now() / 1000 + hour, -1)
    const visitor = await visitorOf(cores, session)
    const lines: string[] = []
    for await (const line of exportVisitor(cores.core, visitor)) lines.push(line)
    expect(lines.filter((line) => JSON.parse(line).kind === 'ban')).toHaveLength(2)
    expect(lines.join()).not.toContain(address)
    await eraseVisitor(cores.core, visitor, 'desk')
    await finishErasures(cores, cores.core)
    expect(await codeOf(begin(address))).toBe('VisitorBanned')
  })

  it.each([[3599], [2_592_001], [0]])(
    'is rejected with a duration of %i seconds, and then nothing is banned',
    async (seconds) => {
      const session = await begin(newAddress())
      expect(await codeOf(ban(session, seconds))).toBe('ValidationFailed')
      expect(await codeOf(cores.send(session, 'still here'))).toBe('ok')
    },
  )

  it('is rejected if the address of the session is not known', async () => {
    const session = await begin(undefined)
    const failure = await ban(session).catch((error) => error)
    expect(failure.issues).toEqual([{ path: '/addressBanSeconds', rule: 'addressKnown' }])
    expect(await codeOf(cores.send(session, 'still here'))).toBe('ok')
  })
})

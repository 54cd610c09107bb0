import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { until } from '../../test/support/until.ts'
import { watchConversations } from '../rpc/watch-conversations.ts'
import { codeOf, testCores } from '../test/cores.ts'
import type { TestStream } from '../test/streams.ts'
import { site } from '../test/visitor-credentials.ts'
import type { Availability } from '../workspaces/model.ts'
import { operatorScopes } from '../workspaces/workspace-sessions.ts'
import { findInstallation, installationFor, updateInstallation } from '../workspaces/workspaces.ts'
import { readAvailability } from './availability.ts'
import { availabilitySenderOf } from './availability-sender.ts'
import { operatorPresenceOf, storePresence } from './operator-presence.ts'

const cores = testCores({ count: 2 })
const open = { weekday: 1, from: '00:00', to: '00:01' }

async function newSite(availability?: Partial<Availability>) {
  const at = await cores.newSite(availability && { availability })
  return {
    ...at,
    /** Changes the availability on the second core. */
    set: (change: Partial<Availability>) =>
      updateInstallation(cores.other, at.publicSiteKey, { availability: change }, undefined),
    /** Returns the state in the configuration of the first core. */
    async state() {
      const installation = await installationFor(cores.core, at.publicSiteKey, site)
      return readAvailability(cores.core, installation)
    },
    /** Opens a stream on each core. */
    async openStreams(): Promise<[TestStream, TestStream]> {
      const visitor = await cores.newVisitor(at)
      return [await cores.openStream(visitor), await cores.openStream(visitor, cores.other)]
    },
  }
}

const onlineOf = ({ availability }: TestStream) => availability.map(({ online }) => online)

/** Waits until both streams have received exactly these states. */
async function expectTold(streams: TestStream[], ...states: boolean[]) {
  for (const stream of streams) await expect.poll(() => onlineOf(stream), { interval: 20 }).toEqual(states)
}

/** Watches an inbox like a console, until the returned function is called. */
function watchInbox(core: typeof cores.core, workspaceId: string | undefined) {
  const call = new AbortController()
  const ended = (async () => {
    for await (const _ of watchConversations(core, { workspaceId, scopes: operatorScopes }, call.signal));
  })()
  return () => {
    call.abort()
    return ended
  }
}

describe('the availability of an installation', () => {
  it('is always online without settings, and streams receive no event', async () => {
    const { state, openStreams } = await newSite()
    const streams = await openStreams()
    expect(await state()).toEqual({ online: true })
    for (const { availability } of streams) expect(availability).toEqual([])
  })

  it('an override is in force on each core and open stream within a second', async () => {
    const { set, state, openStreams } = await newSite()
    const streams = await openStreams()
    await set({ mode: 'away' })
    await expectTold(streams, false)
    expect(await state()).toEqual({ online: false })
    await set({ mode: 'away' })
    await set({ mode: 'online' })
    await expectTold(streams, false, true)
    const [stream] = streams
    expect([stream.types, stream.sequences, stream.position]).toEqual([[], [], 0])
  })

  it('a stream that opens after a change receives only later changes', async () => {
    const { set, openStreams } = await newSite()
    const [early] = await openStreams()
    await set({ mode: 'away' })
    await expectTold([early], false)
    const late = await openStreams()
    await set({ mode: 'online' })
    await expectTold([early], false, true)
    await expectTold(late, true)
  })

  itLong('streams on each core receive an event at closing time, which contains the next opening time', async () => {
    const today = new Date(cores.now()).toISOString().slice(0, 10)
    const hours = [{ from: '00:00', to: '23:59' }]
    const { state, openStreams } = await newSite({ exceptions: [{ date: today, hours }] })
    const streams = await openStreams()
    const closing = new Date(`${today}T23:59:00Z`)
    const opening = new Date(closing.getTime() + 60_000)
    expect(await state()).toEqual({ online: true, nextChangeAt: closing })
    cores.advance((closing.getTime() - cores.now()) / 1000 - 5)
    expect((await state()).online).toBe(true)
    // The sessions have expired by now, so their streams end. Use streams of new sessions instead.
    const open = await openStreams()
    cores.advance(6)
    await expectTold(open, false)
    expect(open[0].availability).toEqual([{ online: false, nextChangeAt: opening.toISOString() }])
    cores.advance(60)
    await expectTold(open, false, true)
    for (const stream of streams) stream.close()
  })

  it('each field is set separately, and an empty list removes the hours', async () => {
    const { publicSiteKey, set } = await newSite({ weeklyHours: [open] })
    await Promise.all([set({ mode: 'away' }), set({ timeZone: 'Europe/Vienna' }), set({ requiresOperator: true })])
    const read = async () => (await findInstallation(cores.core, publicSiteKey, undefined)).availability
    expect(await read()).toEqual({
      mode: 'away',
      timeZone: 'Europe/Vienna',
      weeklyHours: [open],
      requiresOperator: true,
    })
    await set({ weeklyHours: [] })
    expect(await read()).toMatchObject({ weeklyHours: [], mode: 'away' })
  })

  it('settings with an error are refused and change nothing', async () => {
    const { set, state } = await newSite({ mode: 'away' })
    expect(await codeOf(set({ mode: 'online', timeZone: 'Europe/Atlantis' }))).toBe('ValidationFailed')
    expect(await state()).toEqual({ online: false })
  })
})

describe('an installation that requires an operator', () => {
  it('is online while somebody watches the inbox on any core', async () => {
    const { workspaceId, state, openStreams } = await newSite({ requiresOperator: true })
    const streams = await openStreams()
    expect(await state()).toEqual({ online: false })
    const leave = watchInbox(cores.other, workspaceId)
    await expectTold(streams, true)
    await leave()
    cores.advance(16)
    await expectTold(streams, true, false)
  })

  it('stays online while a console reconnects to another core', async () => {
    const { workspaceId, openStreams } = await newSite({ requiresOperator: true })
    const leave = watchInbox(cores.core, workspaceId)
    const streams = await openStreams()
    await expect.poll(async () => onlineOf(streams[0]).at(-1) ?? true).toBe(true)
    await leave()
    cores.advance(3)
    const leaveAgain = watchInbox(cores.other, workspaceId)
    const presences = () => cores.core.db.operatorPresence.countDocuments({ workspaces: workspaceId })
    await until('the presence on both cores', async () => (await presences()) === 2)
    await operatorPresenceOf(cores.core).renew()
    cores.advance(4)
    await Promise.all([operatorPresenceOf(cores.core).renew(), operatorPresenceOf(cores.other).renew()])
    await availabilitySenderOf(cores.core).check()
    expect(onlineOf(streams[0])).not.toContain(false)
    await leaveAgain()
  })

  itLong('is away 10 seconds after the death of the core on which the inbox was watched', async () => {
    const { workspaceId, openStreams } = await newSite({ requiresOperator: true })
    const streams = await openStreams()
    // Act as a process that dies: store a lease and never renew it.
    await storePresence(cores.other, randomUUID(), [workspaceId], new Date(cores.now() + 10_000))
    await expectTold(streams, true)
    cores.advance(11)
    await expectTold(streams, true, false)
  })

  it('stays away while only operators of another workspace are present; an override needs no operator', async () => {
    const { set, state, openStreams } = await newSite({ requiresOperator: true })
    const streams = await openStreams()
    const leave = watchInbox(cores.core, 'ws_other')
    await expect.poll(() => operatorPresenceOf(cores.core).isAttended('ws_other')).toBe(true)
    expect(await state()).toEqual({ online: false })
    await set({ mode: 'online' })
    await expectTold(streams, true)
    await leave()
  })

  it('is away outside of its hours although somebody watches the inbox', async () => {
    const { workspaceId, state } = await newSite({
      requiresOperator: true,
      weeklyHours: [1, 2, 3, 4, 5, 6, 7].map((weekday) => ({ weekday, from: '00:00', to: '24:00' })),
      exceptions: [{ date: new Date(cores.now()).toISOString().slice(0, 10), hours: [] }],
    })
    const leave = watchInbox(cores.core, workspaceId)
    await expect.poll(() => operatorPresenceOf(cores.core).isAttended(workspaceId)).toBe(true)
    expect(await state()).toMatchObject({ online: false })
    await leave()
  })
})

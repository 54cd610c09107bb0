import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { bareCore } from '../test/core-with.ts'
import { type Presence, visitorPresenceOf } from './visitor-presence.ts'

const none = { opened: [], ended: [], reports: [] }
const workspaceId = 'ws_1'

function newScene() {
  let now = 1_000_000
  const presence = visitorPresenceOf(bareCore({ now: () => now }))
  const shown = new Map<string, Presence>()
  presence.watch(workspaceId, (changes) => {
    for (const each of changes) shown.set(each.conversationId, each.presence)
  })
  const gateways: { isStopped: boolean; beat(): void }[] = []

  function newGateway() {
    const source = presence.addSource()
    let lastId = 0
    const gateway = {
      isStopped: false,
      open(conversationId = 'cnv_1', of = workspaceId) {
        lastId += 1
        source.update({ ...none, opened: [{ streamId: lastId, conversationId, workspaceId: of }] })
        return lastId
      },
      close: (streamId: number) => source.update({ ...none, ended: [streamId] }),
      report: (isHere: boolean, tab = 'a', conversationId = 'cnv_1') =>
        source.update({ ...none, reports: [{ conversationId, workspaceId, tab, isHere }] }),
      beat: () => source.update(none),
      end: source.end,
    }
    gateways.push(gateway)
    return gateway
  }

  return {
    presence,
    newGateway,
    of: (conversationId = 'cnv_1') => shown.get(conversationId) ?? 'gone',
    /** Advances the clock. Gateways send an update every 250 ms, except stopped ones. */
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 250) {
        now += 250
        for (const gateway of gateways) if (!gateway.isStopped) gateway.beat()
        await presence.check()
      }
    },
    jump(ms: number) {
      now += ms
    },
  }
}

describe('the presence of a visitor', () => {
  it('is `here` while a tab shows the chat, `away` while a tab is connected, and else `gone`', async () => {
    const { newGateway, of, pass } = newScene()
    const gateway = newGateway()
    const stream = gateway.open()
    await pass(250)
    expect(of()).toBe('away')
    gateway.report(true)
    await pass(250)
    expect(of()).toBe('here')
    gateway.report(false)
    await pass(250)
    expect(of()).toBe('away')
    gateway.close(stream)
    await pass(1_500)
    expect(of()).toBe('away')
    await pass(1_000)
    expect(of()).toBe('gone')
  })

  it('is `here` if one of several tabs shows the chat, whichever gateways the tabs use', async () => {
    const { newGateway, of, pass } = newScene()
    const [one, other] = [newGateway(), newGateway()]
    one.open()
    other.open()
    one.report(true, 'a')
    other.report(true, 'b')
    one.report(false, 'b')
    await pass(250)
    expect(of()).toBe('here')
    other.report(false, 'a')
    await pass(250)
    expect(of()).toBe('away')
  })

  it('is `gone` within 5 s after the tab that shows the chat stops reporting but keeps its stream, and `here` after its next report', async () => {
    const { newGateway, of, pass } = newScene()
    const gateway = newGateway()
    gateway.open()
    gateway.report(true)
    await pass(3_500)
    expect(of()).toBe('here')
    await pass(1_000)
    expect(of()).toBe('gone')
    gateway.report(true)
    await pass(250)
    expect(of()).toBe('here')
  })

  it('is `away` if the tab that shows the chat closes and another tab is connected', async () => {
    const { newGateway, of, pass } = newScene()
    const gateway = newGateway()
    gateway.open()
    const stream = gateway.open()
    gateway.report(true)
    await pass(500)
    gateway.close(stream)
    await pass(4_000)
    expect(of()).toBe('away')
    await pass(60_000)
    expect(of()).toBe('away')
  })

  it('stays `here` when the gateway of the stream dies and the tab moves to another gateway', async () => {
    const { newGateway, of, pass } = newScene()
    const [one, other] = [newGateway(), newGateway()]
    one.open()
    one.report(true)
    await pass(1_000)
    one.end()
    await pass(1_500)
    other.open()
    other.report(true)
    await pass(250)
    expect(of()).toBe('here')
  })

  it('is `gone` within 5 s if a gateway stops sending updates, and `away` again when it continues', async () => {
    const { newGateway, of, pass } = newScene()
    const gateway = newGateway()
    gateway.open()
    await pass(250)
    gateway.isStopped = true
    await pass(4_750)
    expect(of()).toBe('gone')
    gateway.isStopped = false
    await pass(500)
    expect(of()).toBe('away')
  })

  it('does not change if only the core itself was stopped for a while', async () => {
    const { newGateway, of, pass, jump } = newScene()
    const gateway = newGateway()
    gateway.open()
    gateway.report(true)
    await pass(250)
    jump(60_000)
    await pass(250)
    expect(of()).toBe('here')
    gateway.report(true)
    await pass(250)
    expect(of()).toBe('here')
  })

  it('is not reported to watchers of another workspace, and is reported to a new watcher at once', async () => {
    const { presence, newGateway, pass } = newScene()
    const seen: string[] = []
    presence.watch('ws_other', (changes) => seen.push(...changes.map(({ conversationId }) => conversationId)))
    const gateway = newGateway()
    gateway.open()
    gateway.open('cnv_other', 'ws_other')
    await pass(250)
    expect(seen).toEqual(['cnv_other'])
    const known: unknown[] = []
    presence.watch(undefined, (changes, isComplete) => known.push(isComplete, changes.length))
    expect(known).toEqual([true, 2])
  })

  it('depends only on the 50 tabs that reported last', async () => {
    const { newGateway, of, pass } = newScene()
    const gateway = newGateway()
    gateway.open()
    for (let tab = 0; tab < 10_000; tab += 1) gateway.report(true, `tab-${tab}`)
    await pass(250)
    expect(of()).toBe('here')
    for (let tab = 9_950; tab < 10_000; tab += 1) gateway.report(false, `tab-${tab}`)
    await pass(250)
    expect(of()).toBe('away')
  })

  it('matches the open streams and tabs 5 s after any sequence of changes', async () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constantFrom('open', 'close', 'stop', 'end'), gateway: fc.nat(2), ms: fc.nat(3_000) }),
      fc.record({
        kind: fc.constantFrom('here', 'away'),
        gateway: fc.nat(2),
        tab: fc.constantFrom('a', 'b'),
        ms: fc.nat(3_000),
      }),
    )
    await forAllAsync([fc.array(step, { maxLength: 30 })], runs(600, 20), async (steps) => {
      const { newGateway, of, pass } = newScene()
      let gateways = [0, 1, 2].map(() => ({ gateway: newGateway(), streams: [] as number[] }))
      for (const each of steps) {
        const { gateway, streams } = gateways[each.gateway]!
        if (each.kind === 'open') streams.push(gateway.open())
        else if (each.kind === 'close' && streams.length > 0) gateway.close(streams.shift()!)
        else if (each.kind === 'stop') gateway.isStopped = true
        else if (each.kind === 'end') {
          gateway.end()
          gateways = gateways.with(each.gateway, { gateway: newGateway(), streams: [] })
        } else if ('tab' in each) {
          gateway.isStopped = false
          gateway.report(each.kind === 'here', each.tab)
        }
        await pass(each.ms)
      }
      // A real tab repeats its report while it shows the chat. The tabs of this test do not. So
      // each tab now reports `away`, which replaces its earlier report.
      for (const tab of ['a', 'b']) gateways[0]!.gateway.report(false, tab)
      await pass(5_000)
      const open = gateways.filter(({ gateway }) => !gateway.isStopped).flatMap(({ streams }) => streams)
      expect(of()).toBe(open.length > 0 ? 'away' : 'gone')
      gateways[0]!.gateway.isStopped = false
      gateways[0]!.gateway.report(true)
      await pass(250)
      expect(of()).toBe('here')
    })
  })
})

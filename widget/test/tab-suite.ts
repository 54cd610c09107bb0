import { type SuiteContext, same, type Tab } from './suite-context.ts'

/** Tests of the headless client with several tabs of one browser. */
export const tabSuite: Record<string, (context: SuiteContext) => Promise<void>> = {
  async 'a duplicated tab shows each message once'(context) {
    const first = context.tab()
    await first.online()
    const second = context.tab({ copyOf: first })
    await second.online()
    await context.agentSays('Hello, both')
    first.client.sendMessage('From the first')
    second.client.sendMessage('From the second')
    const areSettled = () => [first, second].every((tab) => tab.states().join() === 'queued,queued,queued')
    await context.until(areSettled)
    same(first.bodies(), second.bodies())
    same([first.count('message.received'), second.count('message.received')], [1, 1])
    same([first.count('message.accepted'), second.count('message.accepted')], [2, 2])
    same((await context.stored()).flat().length, 3)
  },

  async 'a tab that is duplicated during a send does not duplicate the message'(context) {
    const first = context.tab()
    await first.online()
    await context.set({ stallSends: 1 })
    first.client.sendMessage('Hello')
    await context.until(async () => (await context.stalled()) === 1)
    const second = context.tab({ copyOf: first })
    await second.online()
    await context.release()
    await context.until(() => first.states().join() === 'queued' && second.states().join() === 'queued')
    same([first.bodies(), second.bodies(), (await context.stored()).flat().length], [['Hello'], ['Hello'], 1])
  },

  async 'seven tabs of one session over HTTP/2 have five streams in total, and each tab shows each message once'(
    context,
  ) {
    const first = context.tab()
    await first.online()
    const tabs = [first, ...Array.from({ length: 6 }, () => context.tab({ copyOf: first }))]
    const all = async (condition: (tab: Tab) => boolean) => {
      for (let rounds = 0; rounds < 10 && !tabs.every(condition); rounds += 1) {
        await context.until(() => tabs.filter(condition).length >= 5)
        // After 15 s without a stream, a tab takes over the stream of another tab.
        for (const tab of tabs) if (!condition(tab)) tab.clock.advance(15_000)
      }
      await context.until(() => tabs.every(condition))
    }
    for (const tab of tabs) void tab.client.start()
    await all((tab) => tab.client.connection() === 'online')
    await context.agentSays('Hello, all')
    await all((tab) => tab.bodies().length === 1)
    for (const tab of tabs) same([tab.bodies(), tab.count('message.received')], [['Hello, all'], 1])
    await context.until(async () => (await context.streams()) === 5)
  },

  async 'ten tabs over HTTP/1.1 take turns with two streams, and each tab sends messages and shows each message once'(
    context,
  ) {
    const tabs = Array.from({ length: 10 }, () => context.tab({ protocol: 'http/1.1' }))
    for (const tab of tabs) void tab.client.start()
    let streams = 0
    const all = (condition: (tab: Tab) => boolean) =>
      context.until(async () => {
        streams = Math.max(streams, await context.streams())
        return tabs.every(condition)
      })
    await all((tab) => tab.client.session() !== undefined)
    for (const tab of tabs) tab.client.sendMessage('A question')
    await all((tab) => tab.states()[0] === 'queued' && tab.client.connection() === 'online')
    await context.agentSaysToAll('An answer')
    await all((tab) => tab.bodies().length === 2)
    for (const tab of tabs) same([tab.bodies(), tab.count('message.received')], [['A question', 'An answer'], 1])
    same(streams, 2)
  },

  async 'a hidden tab over HTTP/1.1 closes its stream, still sends, and shows missed messages when it becomes visible'(
    context,
  ) {
    const tab = context.tab({ protocol: 'http/1.1' })
    await tab.online()
    tab.setVisible(false)
    await context.until(async () => (await context.streams()) === 0)
    tab.client.sendMessage('From behind')
    await context.until(() => tab.states()[0] === 'queued')
    await context.agentSays('Meanwhile')
    tab.clock.advance(60_000)
    same([await context.streams(), tab.bodies()], [0, ['From behind']])
    tab.setVisible(true)
    await context.until(() => tab.bodies().length === 2)
    same([tab.bodies(), tab.count('message.received')], [['From behind', 'Meanwhile'], 1])
  },

  async 'a tab that was opened in the background over HTTP/1.1 sends messages, and opens its stream when it becomes visible'(
    context,
  ) {
    const tab = context.tab({ protocol: 'http/1.1', isVisible: false })
    await tab.client.start()
    tab.client.sendMessage('From behind')
    await context.until(() => tab.states()[0] === 'queued')
    await context.agentSays('Meanwhile')
    same(await context.streams(), 0)
    tab.setVisible(true)
    await context.until(() => tab.client.connection() === 'online' && tab.bodies().length === 2)
  },

  async 'a hidden tab over HTTP/2 keeps its stream'(context) {
    const tab = context.tab()
    await tab.online()
    tab.setVisible(false)
    await context.agentSays('Live')
    await context.until(() => tab.bodies().length === 1)
    same(await context.streams(), 1)
  },

  async 'in a browser without locks, a visible tab has a stream, and a hidden tab over HTTP/1.1 has none'(context) {
    const tabs = [1, 2, 3].map(() => context.tab({ protocol: 'http/1.1 without locks' }))
    for (const tab of tabs) await tab.online()
    same(await context.streams(), 3)
    tabs[0]!.setVisible(false)
    await context.until(async () => (await context.streams()) === 2)
    await context.agentSaysToAll('Hello')
    await context.until(() => tabs[1]!.bodies().length === 1)
    tabs[0]!.setVisible(true)
    await context.until(() => tabs[0]!.bodies().length === 1)
  },

  async 'a waiting tab over HTTP/1.1 opens its stream when a tab with a stream is killed'(context) {
    const [first, second, third] = [1, 2, 3].map(() => context.tab({ protocol: 'http/1.1' })) as [Tab, Tab, Tab]
    await first.online()
    await second.online()
    first.clock.advance = second.clock.advance = () => {}
    await third.client.start()
    first.kill()
    await context.until(() => third.client.connection() === 'online')
  },

  async 'a waiting tab takes over the stream of a frozen tab, and the frozen tab shows missed messages when it runs again'(
    context,
  ) {
    const [first, second, third] = [1, 2, 3].map(() => context.tab({ protocol: 'http/1.1' })) as [Tab, Tab, Tab]
    await first.online()
    await second.online()
    const hung = [first, second].map((tab) => ({ tab, advance: tab.clock.advance }))
    for (const { tab } of hung) tab.clock.advance = () => {}
    await third.client.start()
    const before = third.clock.now()
    await context.until(() => third.client.connection() === 'online')
    same(third.clock.now() - before >= 15_000, true)
    await context.agentSaysToAll('For all')
    for (const { tab, advance } of hung) tab.clock.advance = advance
    await context.until(() => [first, second, third].every((tab) => tab.bodies().length === 1))
    same(
      [first, second, third].map((tab) => tab.count('message.received')),
      [1, 1, 1],
    )
  },

  async 'both tabs of a session renew the grant, and the session ends in neither tab'(context) {
    const first = context.tab()
    await first.online()
    const second = context.tab({ copyOf: first })
    await second.online()
    for (const renewals of [2, 4]) {
      for (const tab of [first, second]) tab.clock.advance(616_000)
      await context.until(async () => (await context.requests('POST /sessions/renew')).length >= renewals)
      await context.until(() => [first, second].every((tab) => (tab.clock.nextIn(300_000) ?? 0) > 0))
    }
    second.client.sendMessage('Still here')
    await context.until(() => first.states().join() === 'queued' && second.states().join() === 'queued')
    same([first.client.ended(), second.client.ended()], [undefined, undefined])
  },
}

import { type SuiteWorld, same, type Tab } from './suite-world.ts'

/** What the headless client promises where one browser has several tabs. */
export const tabSuite: Record<string, (world: SuiteWorld) => Promise<void>> = {
  async 'a duplicated tab has each message once'(world) {
    const first = world.tab()
    await first.online()
    const second = world.tab({ copyOf: first })
    await second.online()
    await world.agentSays('Hello, both')
    first.client.sendMessage('From the first')
    second.client.sendMessage('From the second')
    const areSettled = () => [first, second].every((tab) => tab.states().join() === 'queued,queued,queued')
    await world.until(areSettled)
    same(first.bodies(), second.bodies())
    same([first.count('message.received'), second.count('message.received')], [1, 1])
    same([first.count('message.accepted'), second.count('message.accepted')], [2, 2])
    same((await world.stored()).flat().length, 3)
  },

  async 'a tab duplicated during a send does not duplicate the message'(world) {
    const first = world.tab()
    await first.online()
    await world.set({ stallSends: 1 })
    first.client.sendMessage('Hello')
    await world.until(async () => (await world.stalled()) === 1)
    const second = world.tab({ copyOf: first })
    await second.online()
    await world.release()
    await world.until(() => first.states().join() === 'queued' && second.states().join() === 'queued')
    same([first.bodies(), second.bodies(), (await world.stored()).flat().length], [['Hello'], ['Hello'], 1])
  },

  async 'seven duplicates over HTTP/2 have five streams together, and each has each message once'(world) {
    const first = world.tab()
    await first.online()
    const tabs = [first, ...Array.from({ length: 6 }, () => world.tab({ copyOf: first }))]
    const all = async (condition: (tab: Tab) => boolean) => {
      for (let rounds = 0; rounds < 10 && !tabs.every(condition); rounds += 1) {
        await world.until(() => tabs.filter(condition).length >= 5)
        // Those that wait for a stream have waited long enough to take one.
        for (const tab of tabs) if (!condition(tab)) tab.clock.advance(15_000)
      }
      await world.until(() => tabs.every(condition))
    }
    for (const tab of tabs) void tab.client.start()
    await all((tab) => tab.client.connection() === 'online')
    await world.agentSays('Hello, all')
    await all((tab) => tab.bodies().length === 1)
    for (const tab of tabs) same([tab.bodies(), tab.count('message.received')], [['Hello, all'], 1])
    await world.until(async () => (await world.streams()) === 5)
  },

  async 'ten tabs over HTTP/1.1 take turns with two streams, and each sends and has each message once'(world) {
    const tabs = Array.from({ length: 10 }, () => world.tab({ protocol: 'http/1.1' }))
    for (const tab of tabs) void tab.client.start()
    let streams = 0
    const all = (condition: (tab: Tab) => boolean) =>
      world.until(async () => {
        streams = Math.max(streams, await world.streams())
        return tabs.every(condition)
      })
    await all((tab) => tab.client.session() !== undefined)
    for (const tab of tabs) tab.client.sendMessage('A question')
    await all((tab) => tab.states()[0] === 'queued' && tab.client.connection() === 'online')
    await world.agentSaysToAll('An answer')
    await all((tab) => tab.bodies().length === 2)
    for (const tab of tabs) same([tab.bodies(), tab.count('message.received')], [['A question', 'An answer'], 1])
    same(streams, 2)
  },

  async 'a hidden tab over HTTP/1.1 closes its stream, sends, and has missed messages when it becomes visible'(world) {
    const tab = world.tab({ protocol: 'http/1.1' })
    await tab.online()
    tab.setVisible(false)
    await world.until(async () => (await world.streams()) === 0)
    tab.client.sendMessage('From behind')
    await world.until(() => tab.states()[0] === 'queued')
    await world.agentSays('Meanwhile')
    tab.clock.advance(60_000)
    same([await world.streams(), tab.bodies()], [0, ['From behind']])
    tab.setVisible(true)
    await world.until(() => tab.bodies().length === 2)
    same([tab.bodies(), tab.count('message.received')], [['From behind', 'Meanwhile'], 1])
  },

  async 'a tab opened in the background over HTTP/1.1 sends, and opens its stream when it becomes visible'(world) {
    const tab = world.tab({ protocol: 'http/1.1', isVisible: false })
    await tab.client.start()
    tab.client.sendMessage('From behind')
    await world.until(() => tab.states()[0] === 'queued')
    await world.agentSays('Meanwhile')
    same(await world.streams(), 0)
    tab.setVisible(true)
    await world.until(() => tab.client.connection() === 'online' && tab.bodies().length === 2)
  },

  async 'a hidden tab over HTTP/2 keeps its stream'(world) {
    const tab = world.tab()
    await tab.online()
    tab.setVisible(false)
    await world.agentSays('Live')
    await world.until(() => tab.bodies().length === 1)
    same(await world.streams(), 1)
  },

  async 'without locks a visible tab has a stream, and a hidden one over HTTP/1.1 has none'(world) {
    const tabs = [1, 2, 3].map(() => world.tab({ protocol: 'http/1.1 without locks' }))
    for (const tab of tabs) await tab.online()
    same(await world.streams(), 3)
    tabs[0]!.setVisible(false)
    await world.until(async () => (await world.streams()) === 2)
    await world.agentSaysToAll('Hello')
    await world.until(() => tabs[1]!.bodies().length === 1)
    tabs[0]!.setVisible(true)
    await world.until(() => tabs[0]!.bodies().length === 1)
  },

  async 'a killed tab frees its slot'(world) {
    const [first, second, third] = [1, 2, 3].map(() => world.tab({ protocol: 'http/1.1' })) as [Tab, Tab, Tab]
    await first.online()
    await second.online()
    first.clock.advance = second.clock.advance = () => {}
    await third.client.start()
    first.kill()
    await world.until(() => third.client.connection() === 'online')
  },

  async 'a frozen tab loses its slot, and has its messages when it runs again'(world) {
    const [first, second, third] = [1, 2, 3].map(() => world.tab({ protocol: 'http/1.1' })) as [Tab, Tab, Tab]
    await first.online()
    await second.online()
    const hung = [first, second].map((tab) => ({ tab, advance: tab.clock.advance }))
    for (const { tab } of hung) tab.clock.advance = () => {}
    await third.client.start()
    const before = third.clock.now()
    await world.until(() => third.client.connection() === 'online')
    same(third.clock.now() - before >= 15_000, true)
    await world.agentSaysToAll('For all')
    for (const { tab, advance } of hung) tab.clock.advance = advance
    await world.until(() => [first, second, third].every((tab) => tab.bodies().length === 1))
    same(
      [first, second, third].map((tab) => tab.count('message.received')),
      [1, 1, 1],
    )
  },

  async 'both tabs of a session renew it, and neither breaks the other'(world) {
    const first = world.tab()
    await first.online()
    const second = world.tab({ copyOf: first })
    await second.online()
    for (const renewals of [2, 4]) {
      for (const tab of [first, second]) tab.clock.advance(616_000)
      await world.until(async () => (await world.requests('POST /sessions/renew')).length >= renewals)
      await world.until(() => [first, second].every((tab) => (tab.clock.nextIn(300_000) ?? 0) > 0))
    }
    second.client.sendMessage('Still here')
    await world.until(() => first.states().join() === 'queued' && second.states().join() === 'queued')
    same([first.client.ended(), second.client.ended()], [undefined, undefined])
  },
}

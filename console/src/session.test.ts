import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type CallResult, createSessionHolder, takeSignInFragment, type WorkspaceSession } from './session.ts'

beforeEach(() => void vi.useFakeTimers({ now: 1_800_000_000_000 }))
afterEach(() => {
  // First the spies: they stand on the fake timers.
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** One browser with a cookie, and a service whose answers can be delayed. */
function newBrowser() {
  const tabs = new Set<EventTarget>()
  let signedIn: WorkspaceSession | undefined
  let made = 0
  const state = { isReachable: true, held: undefined as Promise<void> | undefined }
  const answer = async <T>(value: T | undefined): Promise<CallResult<T>> => {
    const result = !state.isReachable ? 'unreachable' : value === undefined ? 'refused' : { value }
    await state.held
    return result
  }

  function newTab() {
    const target = new EventTarget()
    tabs.add(target)
    const channel = {
      addEventListener: target.addEventListener.bind(target),
      removeEventListener: target.removeEventListener.bind(target),
      postMessage(data: unknown) {
        for (const tab of tabs) if (tab !== target) tab.dispatchEvent(new MessageEvent('message', { data }))
      },
    } as never
    const calls: Parameters<typeof createSessionHolder>[0] = {
      current: () => answer(signedIn),
      async signIn(credential, { displayName }) {
        if ('link' in credential && credential.link !== 'good') return 'refused'
        made += 1
        const times = { expiresAt: new Date(Date.now() + 30 * 86_400_000).toISOString() }
        signedIn = { id: `s${made}`, workspaceId: 'ws_1', operator: 'ada', displayName, scopes: [], ...times }
        return { value: signedIn }
      },
      options: () => answer({ provider: false, mail: false }),
      describeLink: () => answer({ workspaceName: 'Shop', firstOwner: false, invitation: false }),
      mailLink: () => answer(undefined),
      beginPasskey: () => answer({ options: '{}' }),
      signInWithPasskey: async () => 'refused',
      beginAtProvider: () => answer<{ url: string }>(undefined),
      async signOut() {
        if (!state.isReachable) return 'unreachable'
        signedIn = undefined
        return { value: undefined }
      },
    }
    return createSessionHolder(calls, channel)
  }

  return {
    state,
    newTab,
    endSession() {
      signedIn = undefined
    },
  }
}

const settle = () => vi.advanceTimersByTimeAsync(0)

describe('the session of a browser', () => {
  it('begins and ends in all tabs', async () => {
    const browser = newBrowser()
    const [one, two] = [browser.newTab(), browser.newTab()]
    await two.load()
    expect([two.current.value, two.loading.value, two.ended.value]).toEqual([undefined, undefined, undefined])
    expect(await one.signIn({ link: 'good' }, { displayName: 'Ada' })).toBeUndefined()
    await settle()
    expect(two.current.value?.displayName).toBe('Ada')
    await two.signOut()
    for (const tab of [one, two]) expect([tab.current.value, tab.ended.value]).toEqual([undefined, 'signed_out'])
  })

  it('stays if a link is refused, and if a sign-out does not reach the service', async () => {
    const browser = newBrowser()
    const tab = browser.newTab()
    await tab.signIn({ link: 'good' }, { displayName: 'Ada' })
    expect(await tab.signIn({ link: 'used' }, { displayName: 'Ada' })).toBe('refused')
    browser.state.isReachable = false
    expect(await tab.signOut()).toBe(false)
    expect(tab.current.value?.id).toBe('s1')
  })

  it('is not restored by a late answer after a sign-out', async () => {
    const browser = newBrowser()
    const tab = browser.newTab()
    await tab.signIn({ link: 'good' }, { displayName: 'Ada' })
    const held = Promise.withResolvers<void>()
    browser.state.held = held.promise
    const loading = tab.load()
    await tab.signOut()
    held.resolve()
    await loading
    expect([tab.current.value, tab.ended.value]).toEqual([undefined, 'signed_out'])
  })

  it('ends only if the service refuses the current session, not an earlier one', async () => {
    const browser = newBrowser()
    const tab = browser.newTab()
    await tab.signIn({ link: 'good' }, { displayName: 'Ada' })
    await tab.signIn({ link: 'good' }, { displayName: 'Bea' })
    browser.endSession()
    await tab.refused('s1')
    expect(tab.current.value?.id).toBe('s2')
    await tab.refused('s2')
    expect([tab.current.value, tab.ended.value]).toEqual([undefined, 'rejected'])
  })

  it('expires on time, even if its lifetime exceeds the maximum delay of setTimeout', async () => {
    // Moving the clock by 30 days would also run the timers that tests of other files have left.
    const timers: [run: () => void, ms: number][] = []
    const setTimer = (run: () => void, ms: number) => void timers.push([run, ms])
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(setTimer as never)
    const tab = newBrowser().newTab()
    const began = Date.now()
    await tab.signIn({ link: 'good' }, { displayName: 'Ada' })
    for (const [run, ms] of timers) {
      expect(ms).toBeLessThan(2 ** 31)
      expect(tab.current.value).toBeDefined()
      vi.setSystemTime(Date.now() + ms)
      run()
    }
    expect([tab.current.value, tab.ended.value]).toEqual([undefined, 'expired'])
    expect(Date.now() - began).toBe(30 * 86_400_000)
  })

  it('is loaded after the service answers again', async () => {
    const browser = newBrowser()
    await browser.newTab().signIn({ link: 'good' }, { displayName: 'Ada' })
    browser.state.isReachable = false
    const tab = browser.newTab()
    await tab.load()
    expect(tab.loading.value).toBe('unreachable')
    browser.state.isReachable = true
    await vi.advanceTimersByTimeAsync(2_000)
    expect([tab.loading.value, tab.current.value?.displayName]).toEqual([undefined, 'Ada'])
  })

  it('reports the number of drafts in all tabs', async () => {
    const browser = newBrowser()
    const [one, two] = [browser.newTab(), browser.newTab()]
    one.onCountDrafts(() => 1)
    two.onCountDrafts(() => 2)
    const count = one.draftsOfAllTabs()
    await vi.advanceTimersByTimeAsync(200)
    expect(await count).toBe(3)
  })
})

describe('the secret of a sign-in link', () => {
  const open = (hash: string) => {
    const replaced: string[] = []
    const history = { replaceState: (_: unknown, __: string, url: string) => void replaced.push(url) } as History
    const location = { hash, pathname: '/console/leads', search: '?a=1' } as Location
    return { found: takeSignInFragment({ location, history }), replaced }
  }

  it('is taken from the fragment and removed from the address', () => {
    expect(open('#sign-in=abc_-1')).toEqual({
      found: { name: 'sign-in', value: 'abc_-1' },
      replaced: ['/console/leads?a=1'],
    })
  })

  it.each(['', '#', '#main', '#sign-in=', '#sign-in=a%20b', '#sign-in=<x>'])(
    'is not found in the fragment %j',
    (hash) => {
      expect(open(hash)).toEqual({ found: { value: '' }, replaced: [] })
    },
  )
})

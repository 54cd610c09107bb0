import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createSessionHolder, readWorkspaceSession } from './session.ts'

beforeEach(() => void vi.useFakeTimers({ now: 1_800_000_000_000 }))
afterEach(() => void vi.useRealTimers())

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const token = (claims: object) => `${part({ alg: 'HS256' })}.${part({ wid: 'ws_1', sub: 'ada', ...claims })}.c2ln`
const inSeconds = (seconds: number) => Math.floor(Date.now() / 1000) + seconds

function storage() {
  const values = new Map<string, string>()
  return {
    values,
    getItem: (key: string) => values.get(key) ?? null,
    setItem: (key: string, value: string) => void values.set(key, value),
    removeItem: (key: string) => void values.delete(key),
  }
}

describe('a workspace session', () => {
  it.each([
    ['an empty text', '', /not a workspace session/],
    ['a text with two parts', 'a.b', /not a workspace session/],
    ['parts that are not JSON', 'a.b.c', /not a workspace session/],
    ['a token without a workspace', `${part({})}.${part({ sub: 'ada' })}.c2ln`, /has no workspace/],
  ])('a workspace session is not created from %s', (_, given, says) => {
    expect(readWorkspaceSession(given, Date.now())).toMatch(says)
  })

  it('a workspace session can contain names with non-ASCII characters', () => {
    expect(readWorkspaceSession(token({ sub: 'Ägnes', scope: 'a b' }), Date.now())).toMatchObject({
      operator: 'Ägnes',
      workspaceId: 'ws_1',
      scopes: ['a', 'b'],
    })
  })

  it('a workspace session expires on time and is removed from the tab, even if its lifetime exceeds the maximum delay of setTimeout', () => {
    const tab = storage()
    const holder = createSessionHolder({ storage: tab, now: Date.now })
    const days = 30 * 86_400
    expect(holder.signIn(token({ exp: inSeconds(days) }), 'Ada')).toBeUndefined()
    vi.advanceTimersByTime((days - 1) * 1000)
    expect(holder.current.value?.displayName).toBe('Ada')
    vi.advanceTimersByTime(1000)
    expect(holder.current.value).toBeUndefined()
    expect(holder.ended.value).toBe('expired')
    expect([...tab.values.values()].join()).not.toContain('.c2ln')
  })

  it('a workspace session is restored after a reload unless it has expired', () => {
    const tab = storage()
    createSessionHolder({ storage: tab, now: Date.now }).signIn(token({ exp: inSeconds(60) }), '')
    expect(createSessionHolder({ storage: tab, now: Date.now }).current.value?.displayName).toBe('ada')
    const later = createSessionHolder({ storage: tab, now: () => Date.now() + 61_000 })
    expect(later.current.value).toBeUndefined()
    expect(later.ended.value).toBe('expired')
  })
})

import { afterEach, expect, it, vi } from 'vitest'
import { storageFor } from './storage.ts'

afterEach(() => vi.unstubAllGlobals())

it('the storage keeps values in memory if session storage rejects them', () => {
  vi.stubGlobal('sessionStorage', {
    getItem: () => null,
    setItem() {
      throw new DOMException('full', 'QuotaExceededError')
    },
    removeItem: () => {},
  })
  const storage = storageFor('session')
  storage.setItem('key', 'value')
  expect(storage.getItem('key')).toBe('value')
  storage.removeItem('key')
  expect(storage.getItem('key')).toBeNull()
})

it('the storage does not access session storage in memory mode', () => {
  const setItem = vi.fn()
  vi.stubGlobal('sessionStorage', { getItem: setItem, setItem, removeItem: setItem })
  const storage = storageFor('memory')
  storage.setItem('key', 'value')
  expect(storage.getItem('key')).toBe('value')
  expect(setItem).not.toHaveBeenCalled()
})

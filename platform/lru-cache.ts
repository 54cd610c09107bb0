import { LRUCache } from 'lru-cache'

/**
 * Evicts the least recently used entries above `maxSize`. The package's option `max` would allocate room for
 * all entries at the start: 13 ms and 2 MB for 100,000 entries.
 */
export const createLruCache = <Value extends object | string | number | boolean>(
  maxSize: number,
  sizeOf: (value: Value, key: string) => number = () => 1,
): LRUCache<string, Value> => new LRUCache({ maxSize, sizeCalculation: sizeOf })

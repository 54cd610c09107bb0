import type { SessionContent } from '../sessions/model.ts'
import { send, type TestCores } from './cores.ts'
import { flushFeed } from './feed.ts'

/**
 * Sends a message from each of several cores. Each core dies after more writes than the core before it, and the last
 * core survives. Each core also writes its part of the event feed, if it lives so long.
 */
export function sendFromDyingCores(cores: TestCores, visitor: SessionContent) {
  return cores.untilOneSurvives(async (mortal, writes) => {
    let died = false
    const note = () => {
      died = true
    }
    await send(mortal, visitor, `message-${writes}`).catch(note)
    await flushFeed(mortal).catch(note)
    return died
  })
}

import { createChime } from '../../../../browser/chat/chime.ts'
import type { KeyValueStorage } from '../../../../browser/storage.ts'
import { sessionRecordKey } from '../../session/session-record.ts'

/**
 * Creates the sound of a new answer. It is off until the visitor turns it on, and off again in the
 * next tab.
 */
export function createAnswerSound(storage: KeyValueStorage, siteKey: string) {
  const key = `${sessionRecordKey(siteKey)}.sound`
  const chime = createChime(0.08)
  const isOn = () => storage.getItem(key) === 'true'

  function play() {
    // Browsers delay sounds until the visitor has used the page.
    if (!isOn() || navigator.userActivation?.hasBeenActive === false) return
    chime.play()
  }

  return {
    isOn,
    /** Turns the sound on or off. Plays it once when it is turned on. */
    toggle() {
      isOn() ? storage.removeItem(key) : storage.setItem(key, 'true')
      play()
    },
    play,
    dispose: chime.dispose,
  }
}

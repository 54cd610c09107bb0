import type { KeyValueStorage } from '../../../../browser/storage.ts'
import { sessionRecordKey } from '../../session/session-record.ts'

/** The two notes of the sound: when each one starts, in seconds, and its frequency in hertz. */
const notes = [
  [0, 660],
  [0.12, 880],
] as const
const loudness = 0.08
const noteSeconds = 0.25

/**
 * Creates the sound of a new answer. It is off until the visitor turns it on, and off again in the
 * next tab. It is made here, so no file is loaded.
 */
export function createAnswerSound(storage: KeyValueStorage, siteKey: string) {
  const key = `${sessionRecordKey(siteKey)}.sound`
  let audio: AudioContext | undefined
  const isOn = () => storage.getItem(key) === 'true'

  function play() {
    // Browsers delay sounds until the visitor has used the page.
    if (!isOn() || navigator.userActivation?.hasBeenActive === false) return
    audio ??= new AudioContext()
    void audio.resume()
    for (const [start, frequency] of notes) {
      const at = audio.currentTime + start
      const gain = audio.createGain()
      gain.gain.setValueAtTime(loudness, at)
      gain.gain.exponentialRampToValueAtTime(0.001, at + noteSeconds)
      gain.connect(audio.destination)
      const note = audio.createOscillator()
      note.frequency.value = frequency
      note.connect(gain)
      note.start(at)
      note.stop(at + noteSeconds)
    }
  }

  return {
    isOn,
    /** Turns the sound on or off. Plays it once when it is turned on. */
    toggle() {
      isOn() ? storage.removeItem(key) : storage.setItem(key, 'true')
      play()
    },
    play,
    dispose: () => void audio?.close(),
  }
}

/** The two notes of the sound: when each one starts, in seconds, and its frequency in hertz. */
const notes = [
  [0, 660],
  [0.12, 880],
] as const
const noteSeconds = 0.25

/** Creates the sound of a new message. It is made here, so no file is loaded. */
export function createChime(loudness: number) {
  let audio: AudioContext | undefined
  return {
    play() {
      audio ??= new AudioContext()
      void audio.resume()
      for (const [start, frequency] of notes) {
        const at = audio.currentTime + start
        const gain = new GainNode(audio)
        gain.gain.setValueAtTime(loudness, at)
        gain.gain.exponentialRampToValueAtTime(0.001, at + noteSeconds)
        const note = new OscillatorNode(audio, { frequency })
        note.connect(gain).connect(audio.destination)
        note.start(at)
        note.stop(at + noteSeconds)
      }
    },
    dispose() {
      void audio?.close()
      audio = undefined
    },
  }
}

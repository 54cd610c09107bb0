import { signal } from '@preact/signals'
import { storageFor } from '../../browser/storage.ts'

/** The storage of all tabs of the console. If it is blocked, this page keeps the values until it is left. */
export const localStore = storageFor('session', () => localStorage)

/** The storage of this tab. If it is blocked, this page keeps the values until it is left. */
export const tabStore = storageFor('session')

/** Returns a switch that all tabs of this browser store. It is on at first if `start` is true. */
export function storedSwitch(name: string, start: boolean) {
  const key = `service.console.${name}`
  const isOn = signal((localStore.getItem(key) ?? (start ? 'on' : 'off')) === 'on')
  isOn.subscribe((on) => localStore.setItem(key, on ? 'on' : 'off'))
  return isOn
}

/** Whether an answer assigns a conversation that nobody has. */
export const assignsAnswered = storedSwitch('assigns-answered', true)

/** Whether *Send and close* then opens the conversation that has waited longest. */
export const opensNext = storedSwitch('opens-next', false)

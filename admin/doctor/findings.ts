/** What a check found. `text` says what was seen and, for a fault, how to mend it. */
export interface Finding {
  isFault: boolean
  text: string
}

export const fine = (text: string): Finding => ({ isFault: false, text })
export const fault = (text: string): Finding => ({ isFault: true, text })

/** Thrown if a setting is missing or invalid. The message names the setting and its bounds. */
export class SettingError extends Error {
  override readonly name: string = 'SettingError'
}

/** The part of a logger that writes warnings and their ends. */
export interface LineLogger {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

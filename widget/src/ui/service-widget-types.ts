import type { ServiceClientOptions } from '../client/client-options.ts'
import type { WidgetTexts } from './languages/en.ts'
import type { ShellOptions } from './panel/shell.ts'

export interface ServiceWidgetOptions extends ServiceClientOptions, ShellOptions {
  /** Texts that replace the default texts of the user interface in all languages. */
  texts?: Partial<WidgetTexts>
  /** Texts of one language, or of a new one. The keys are tags such as `de` or `de-CH`. */
  localeTexts?: Record<string, Partial<WidgetTexts>>
}

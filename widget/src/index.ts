export * from './client-entry.ts'
export { englishTexts, type WidgetTexts } from './ui/texts.ts'
export { createServiceWidget, type ServiceWidget, type ServiceWidgetOptions } from './ui/widget.ts'

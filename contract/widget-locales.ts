/**
 * Languages in which the widget has all texts: those of the European Union, and nine more. Brazil's
 * Portuguese has its own. Chinese is simplified.
 */
export const widgetLocales: readonly string[] =
  'en bg cs da de el es et fi fr ga hr hu it lt lv mt nl pl pt ro sk sl sv ar he hi ja ko pt-BR tr uk zh'.split(' ')

/** The same without regions, as installations support them. */
export const widgetLanguages = widgetLocales.filter((tag) => !tag.includes('-'))

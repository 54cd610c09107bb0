import { describe, expect, it } from 'vitest'
import type { FormField } from '../../vocabulary/types.ts'
import { autocompleteOf, brokenRule } from './form-check.ts'

const field = (part: Partial<FormField>): FormField => ({
  name: 'field',
  label: 'Field',
  type: 'text',
  required: true,
  maxLength: 20,
  ...part,
})

describe('form fields', () => {
  it.each([
    [{}, '', 'required'],
    [{}, '   ', 'required'],
    [{ required: false }, '', undefined],
    [{}, 'x'.repeat(20), undefined],
    [{}, 'x'.repeat(21), 'maxLength'],
    [{}, '🌿'.repeat(20), undefined],
    [{}, '🌿'.repeat(21), 'maxLength'],
    [{ type: 'email' as const }, 'ada@example.com', undefined],
    [{ type: 'email' as const }, 'ada@example', 'format'],
    [{ type: 'email' as const }, 'ada at example', 'format'],
    [{ type: 'email' as const }, '@example.com', 'format'],
    [{ type: 'tel' as const }, '+43 (660) 12-34', undefined],
    [{ type: 'tel' as const }, '+٩٦٦ ٥٠ ١٢٣ ٤٥٦٧', undefined],
    [{ type: 'email' as const }, 'ada＠example。com', undefined],
    [{ type: 'tel' as const }, 'call me', 'format'],
    [{ type: 'tel' as const }, '12', 'format'],
  ])('for a field with the settings %j and the value %j, brokenRule returns %s', (part, value, rule) => {
    expect(brokenRule(field(part), value)).toBe(rule)
  })

  it('autocompleteOf returns the value that fits the type and name of a field', () => {
    expect(autocompleteOf(field({ type: 'email', name: 'x' }))).toBe('email')
    expect(autocompleteOf(field({ name: 'First_Name' }))).toBe('given-name')
    expect(autocompleteOf(field({ name: 'order' }))).toBe('off')
    expect(autocompleteOf(field({ type: 'textarea', name: 'name' }))).toBe('off')
  })
})

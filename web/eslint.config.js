import hooks from 'eslint-plugin-react-hooks'
import ts from 'typescript-eslint'

const ours = { files: ['src/**/*.{ts,tsx}', 'journeys/**/*.ts'] }

export default ts.config(
  { ignores: ['pages/**', 'node_modules/**', 'src/gen/**'] },
  ...ts.configs.recommended,
  hooks.configs.flat.recommended,
  {
    ...ours,
    rules: {
      'no-alert': 'error', // questions stand in our own dialogs
      'no-restricted-globals': ['error', 'confirm', 'alert', 'prompt'],
      'react-hooks/incompatible-library': 'off', // the virtual list is one
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/consistent-type-assertions': ['error', { assertionStyle: 'never' }],
      'no-restricted-syntax': ['error',
        { selector: 'ExportDefaultDeclaration', message: 'export by name' },
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: 'what comes from a sandbox is text' },
        { selector: "JSXText[value=/[A-Za-z]{2,}/]", message: 'words stand in the catalogues' },
      ],
    },
  },
  { files: ['*.ts'], rules: { 'no-restricted-syntax': 'off' } },
)

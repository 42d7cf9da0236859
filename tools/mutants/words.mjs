/**
 * Ignores strings with a space, whose wording may change; the names and numbers in messages are separate mutants.
 */
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'words', {
    shouldIgnore(path) {
      const text = path.isStringLiteral() ? path.node.value : path.isTemplateLiteral() ? path.node.quasis.map(({ value }) => value.raw).join('') : '';
      return text.includes(' ') ? 'words for people' : undefined;
    },
  }),
];

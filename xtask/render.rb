# Renders the templates of a job as the Director and the CLI do. It needs only Ruby's
# standard library.
#
# It is as strict as the Director. The CLI is less strict: if a property should be a hash
# and is not, the CLI treats the properties below it as not set.
#
#   ruby render.rb JOB < PROPERTIES
#
# JOB is the directory of a job in the release, or of an unpacked job; PROPERTIES is a
# JSON object, as in a manifest. Prints a JSON object with two keys: `files` has the
# rendered templates by path, and `asked` has the names of the properties that the
# templates read. If templates fail, it prints the errors of all of them to stderr, in
# the Director's form, and nothing to stdout.

require 'erb'
require 'json'
require 'yaml'

class UnknownProperty < StandardError
  def initialize(name)
    super("Can't find property '#{name}'")
  end
end

class InvalidPropertyType < StandardError; end

# The functions that a template can call. Of the Director's functions, it has those that
# the templates of this release use.
class Context
  # The result of `if_p`: its `else_if_p` looks at its property only if it is active.
  Else = Struct.new(:context, :active) do
    def else_if_p(name, &block)
      active ? context.if_p(name, &block) : self
    end
  end

  def initialize(job, manifest, asked)
    @asked = asked
    @properties = {}
    # Templates see only the properties that the spec lists.
    (job['properties'] || {}).each { |name, definition| store(manifest, name, (definition || {})['default']) }
  end

  def p(name, *default)
    value = find(name)
    return value unless value.nil?
    return default.first unless default.empty?

    raise UnknownProperty.new(name)
  end

  def if_p(name)
    value = find(name)
    return Else.new(self, true) if value.nil?

    yield value
    Else.new(self, false)
  end

  def own_binding
    binding
  end

  private

  def find(name)
    @asked << name
    name.split('.').reduce(@properties) { |value, key| value.nil? ? nil : value[key] }
  end

  # Stores the value of a property from the manifest, or its default.
  def store(manifest, name, default)
    *parents, last = name.split('.')
    value = (parents + [last]).reduce(manifest) do |found, key|
      break nil if found.nil?
      raise InvalidPropertyType, "Property '#{name}' expects a hash, but received '#{found.class}'" unless found.is_a?(Hash)

      found[key]
    end
    parent = parents.reduce(@properties) { |hash, key| hash[key] ||= {} }
    parent[last] = value.nil? ? default : value
  end
end

def render(directory, manifest)
  asked = []
  spec = %w[job.MF spec].map { |file| File.join(directory, file) }.find { |file| File.file?(file) }
  job = YAML.safe_load(File.read(spec))
  templates = (job['templates'] || {}).map { |from, to| [File.join(directory, 'templates', from), to] }
  templates << [File.join(directory, 'monit'), 'monit']
  errors = []
  files = templates.map do |from, to|
    # Each template has its own context and its own copy of the properties, so that it cannot change those of others.
    erb = ERB.new(File.read(from), trim_mode: '-')
    erb.filename = from
    [to, erb.result(Context.new(job, Marshal.load(Marshal.dump(manifest)), asked).own_binding)]
  rescue StandardError, SyntaxError => error
    frame = error.backtrace.find { |line| line.start_with?(from) }
    errors << "Error filling in template '#{File.basename(from)}' for #{job['name']}/0 " \
              "(line #{frame ? frame.split(':')[1] : 'unknown'}: #{error.message})"
    nil
  end
  abort errors.join("\n") unless errors.empty?
  { 'files' => files.to_h, 'asked' => asked.uniq }
end

puts JSON.generate(render(ARGV.fetch(0), JSON.parse($stdin.read)))

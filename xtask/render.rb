# Renders the templates of a job as the Director and the CLI do, with nothing but
# Ruby's own ERB.
#
# It is as strict as the Director. The CLI is less so: a property below what should
# be a hash and is none counts as not set there, and is no error.
#
#   ruby render.rb JOB < PROPERTIES
#
# JOB is a job's directory in the release, or one that was unpacked; PROPERTIES
# is a JSON object, as a manifest has it. Prints a JSON object: `files`, what
# became of the templates by path, and `asked`, the names of the properties that
# they asked for. Templates that fail are told on stderr like the Director tells
# them, all of them, and nothing is printed.

require 'erb'
require 'json'
require 'yaml'

class UnknownProperty < StandardError
  def initialize(name)
    super("Can't find property '#{name}'")
  end
end

class InvalidPropertyType < StandardError; end

# What a template sees: of all that the Director shows, what this release's templates use.
class Context
  # What `if_p` answers: an `else_if_p` that is tried, or one that is not.
  Else = Struct.new(:context, :active) do
    def else_if_p(name, &block)
      active ? context.if_p(name, &block) : self
    end
  end

  def initialize(job, given, asked)
    @asked = asked
    @properties = {}
    # Properties that the spec does not name are not there, whatever a manifest says.
    (job['properties'] || {}).each { |name, definition| take(given, name, (definition || {})['default']) }
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

  def take(given, name, default)
    *above, last = name.split('.')
    value = (above + [last]).reduce(given) do |found, key|
      break nil if found.nil?
      raise InvalidPropertyType, "Property '#{name}' expects a hash, but received '#{found.class}'" unless found.is_a?(Hash)

      found[key]
    end
    place = above.reduce(@properties) { |hash, key| hash[key] ||= {} }
    place[last] = value.nil? ? default : value
  end
end

def render(directory, given)
  asked = []
  spec = %w[job.MF spec].map { |file| File.join(directory, file) }.find { |file| File.file?(file) }
  job = YAML.safe_load(File.read(spec))
  templates = (job['templates'] || {}).map { |from, to| [File.join(directory, 'templates', from), to] }
  templates << [File.join(directory, 'monit'), 'monit']
  errors = []
  files = templates.map do |from, to|
    # Each template is rendered in a context of its own: what one does to it, no other sees.
    erb = ERB.new(File.read(from), trim_mode: '-')
    erb.filename = from
    [to, erb.result(Context.new(job, Marshal.load(Marshal.dump(given)), asked).own_binding)]
  rescue StandardError, SyntaxError => error
    place = error.backtrace.find { |line| line.start_with?(from) }
    errors << "Error filling in template '#{File.basename(from)}' for #{job['name']}/0 " \
              "(line #{place ? place.split(':')[1] : 'unknown'}: #{error.message})"
    nil
  end
  abort errors.join("\n") unless errors.empty?
  { 'files' => files.to_h, 'asked' => asked.uniq }
end

puts JSON.generate(render(ARGV.fetch(0), JSON.parse($stdin.read)))
